import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { openPty } from '../../apps/sandboxd/src/processes/terminal/pty-device.ts'
import { type CommandRun, runInProcess } from '../../apps/cli/test/in-process.ts'
import { finish, MAIN, runCli, startCli } from './cli-runner.ts'
import { BOX, openFileApi, type FileApi } from './support/file-api.ts'

const ENV = { SBX_TOKEN: `swl_${'t'.repeat(43)}` }
const LARGE = Buffer.alloc(500_000, 'large ')
/** Only root makes devices. */
const isRoot = process.getuid?.() === 0

let api: FileApi
let here: string

beforeAll(async () => {
  api = await openFileApi()
  writeFileSync(there('x'), 'content')
  writeFileSync(there('large'), LARGE)
  mkdirSync(there('tree'))
  for (const name of ['pipe', 'null', 'link', 'plain']) writeFileSync(there(`tree/${name}`), 'new')
})
afterAll(() => api[Symbol.asyncDispose]())
beforeEach(() => {
  here = mkdtempSync(join(tmpdir(), 'cli-copy-target-'))
})
afterEach(() => rmSync(here, { recursive: true, force: true }))

function there(path: string): string {
  return join(api.sandboxd.workspace, path)
}

function argvOf(...words: string[]): [string, ...string[]] {
  return [process.execPath, MAIN, ...words, '--url', api.url]
}

/** Runs a command in this process. */
function cli(...words: string[]): Promise<CommandRun> {
  return runInProcess([...words, '--url', api.url], { env: ENV })
}

/** Takes a byte of a pipe, if there is one. */
function hasBytes(fd: number): boolean {
  try {
    return readSync(fd, new Uint8Array(1)) > 0
  } catch {
    // The pipe is empty for the moment.
    return false
  }
}

function make(...argv: string[]): void {
  expect(Bun.spawnSync(argv, { cwd: here }).success).toBe(true)
}

test('cp writes to a named pipe without replacing it', async () => {
  make('mkfifo', 'pipe')
  const pipe = join(here, 'pipe')
  const report = cli('cp', `${BOX}:large`, pipe)
  const reading = Bun.spawn(['timeout', '20', 'cat', pipe], { stdout: 'pipe' })
  const [{ stderr, code }, read] = await Promise.all([report, new Response(reading.stdout).bytes()])
  expect([stderr, code, Buffer.from(read).equals(LARGE)]).toEqual(['', 0, true])
  expect(lstatSync(pipe).isFIFO()).toBe(true)
  expect(readdirSync(here)).toEqual(['pipe'])
})

test('cp exits like SIGPIPE when the pipe is closed, and can be interrupted while it waits for a reader', async () => {
  make('mkfifo', 'pipe')
  const pipe = join(here, 'pipe')
  const reading = Bun.spawn(['timeout', '20', 'head', '-c', '3', pipe], { stdout: 'pipe' })
  const broken = await cli('cp', `${BOX}:large`, pipe)
  expect([await new Response(reading.stdout).text(), broken.stderr, broken.code]).toEqual(['lar', '', 141])
  const waiting = startCli(argvOf('cp', `${BOX}:x`, pipe), ENV)
  const asked = api.requests.length
  await eventually(() => api.requests.length > asked + 1, { what: 'cp to have looked for the file' })
  waiting.kill('SIGINT')
  expect((await finish(waiting)).code).toBe(130)
})

/** Somewhere to write to that holds a few bytes and is read no further; what is named has a path. */
function openStalled(where: 'a named pipe' | 'a pipe' | 'a terminal'): {
  reader: number
  writer: number
  path: string | undefined
} {
  if (where === 'a terminal') {
    const device = openPty(80, 24)
    if (typeof device === 'number') throw new Error(`Cannot open a terminal: ${device}`)
    return { reader: device.masterFd, writer: device.slaveFd, path: undefined }
  }
  make('mkfifo', 'pipe')
  const pipe = join(here, 'pipe')
  // Open for reading and writing, so that opening does not block.
  const reader = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
  return {
    reader,
    writer: openSync(pipe, constants.O_WRONLY),
    path: where === 'a named pipe' ? pipe : undefined,
  }
}

describe.each(['a named pipe', 'a pipe', 'a terminal'] as const)('while the reader of %s stalls', (where) => {
  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('cp exits at the first %s', async (signal, code) => {
    const { reader, writer, path } = openStalled(where)
    const report = Bun.spawn(argvOf('cp', '--json', `${BOX}:large`, path ?? '-'), {
      stdout: path === undefined ? writer : 'pipe',
      stderr: 'pipe',
      env: { ...process.env, ...ENV },
    })
    await eventually(() => hasBytes(reader), { what: 'the first bytes' })
    // What it holds is full soon.
    await Bun.sleep(100)
    report.kill(signal)
    expect([await report.exited, report.signalCode]).toEqual([code, null])
    const { stdout } = report
    const printed =
      typeof stdout === 'number' || stdout === undefined ? '' : await new Response(stdout).text()
    expect([printed, await new Response(report.stderr).text()]).toEqual(['', ''])
    closeSync(reader)
    closeSync(writer)
  })
})

test.skipIf(!isRoot)('cp writes to a named device without replacing it', async () => {
  make('mknod', 'null', 'c', '1', '3')
  make('mknod', 'full', 'c', '1', '7')
  mkdirSync(join(here, 'by-link'))
  symlinkSync('../null', join(here, 'by-link/x'))
  for (const target of ['null', 'by-link/x', 'by-link']) {
    const { stderr, code } = await cli('cp', `${BOX}:x`, join(here, target))
    expect([target, stderr, code]).toEqual([target, '', 0])
  }
  const full = await cli('cp', `${BOX}:x`, join(here, 'full'))
  expect([full.stderr.split('\n')[0], full.code]).toEqual([
    `sbx-stdio: Cannot write to "${join(here, 'full')}": ENOSPC`,
    255,
  ])
  for (const name of ['null', 'full']) expect(lstatSync(join(here, name)).isCharacterDevice()).toBe(true)
  expect(readlinkSync(join(here, 'by-link/x'))).toBe('../null')
})

test('cp follows a target that is a symlink and replaces its file', async () => {
  mkdirSync(join(here, 'real'))
  writeFileSync(join(here, 'real/file'), 'older')
  symlinkSync('real/file', join(here, 'link'))
  symlinkSync('link', join(here, 'x'))
  for (const target of ['link', 'x', '.']) {
    writeFileSync(join(here, 'real/file'), 'older')
    const { stderr, code } = await cli('cp', `${BOX}:x`, join(here, target))
    expect([target, stderr, code]).toEqual([target, '', 0])
    expect(readFileSync(join(here, 'real/file'), 'utf8')).toBe('content')
  }
  expect([readlinkSync(join(here, 'link')), readlinkSync(join(here, 'x'))]).toEqual(['real/file', 'link'])
  expect(readdirSync(join(here, 'real'))).toEqual(['file'])
})

test('cp refuses a dangling symlink, a symlink to a folder, and a socket', async () => {
  symlinkSync('nowhere', join(here, 'lost'))
  mkdirSync(join(here, 'into/folder'), { recursive: true })
  symlinkSync('folder', join(here, 'into/x'))
  const listening = Bun.listen({ unix: join(here, 'socket'), socket: { data: () => undefined } })
  for (const [target, why] of [
    ['lost', 'it is a dangling symlink'],
    ['into', 'it is a folder'],
    ['socket', 'it is a socket'],
  ] as const) {
    const { stderr, code } = await cli('cp', `${BOX}:x`, join(here, target))
    expect([stderr.split('\n')[0], code]).toEqual([
      `sbx-stdio: Cannot copy to "${join(here, target)}": ${why}`,
      2,
    ])
  }
  expect(lstatSync(join(here, 'socket')).isSocket()).toBe(true)
  listening.stop()
  expect(readlinkSync(join(here, 'lost'))).toBe('nowhere')
})

test('cp skips pipes and devices inside a copied folder, and reports them', async () => {
  mkdirSync(join(here, 'tree'))
  make('mkfifo', 'tree/pipe')
  if (isRoot) make('mknod', 'tree/null', 'c', '1', '3')
  writeFileSync(join(here, 'outside'), 'outside')
  symlinkSync('../outside', join(here, 'tree/link'))
  const { stderr, code } = await cli('cp', `${BOX}:tree/.`, join(here, 'tree'))
  expect(code).toBe(1)
  expect(stderr).toContain('skipped "pipe": a special file is in the way\n')
  expect(lstatSync(join(here, 'tree/pipe')).isFIFO()).toBe(true)
  if (isRoot) expect(lstatSync(join(here, 'tree/null')).isCharacterDevice()).toBe(true)
  expect(readFileSync(join(here, 'outside'), 'utf8')).toBe('outside')
  expect(readFileSync(join(here, 'tree/link'), 'utf8')).toBe('new')
  expect(readdirSync(join(here, 'tree')).toSorted()).toEqual(['link', 'null', 'pipe', 'plain'])
})

// Names in /dev itself are left to unit tests: a fault would replace them on the machine that runs this.
test('cp writes to open descriptors without replacing them', async () => {
  const words = argvOf('cp', `${BOX}:x`).join(' ')
  const script = [
    `${words} /proc/self/fd/1`,
    `${words} /proc/self/fd/1 > direct`,
    `${words} /dev/fd/5 5> other`,
    `${words} >(cat > substituted); for _ in $(seq 100); do [ -s substituted ] && break; sleep 0.1; done`,
  ].join('\n')
  const { stdout, stderr } = await runCli(['bash', '-c', `cd ${here}\n${script}`], { env: ENV })
  expect([stdout.toString(), stderr]).toEqual(['content', ''])
  for (const name of ['direct', 'other', 'substituted'])
    expect([name, readFileSync(join(here, name), 'utf8')]).toEqual([name, 'content'])
})
