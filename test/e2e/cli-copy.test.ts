import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually, type FaultProxy, openFaultProxy, Random } from '@sandwire/testing'
import { type CommandRun, runInProcess } from '../../apps/cli/test/in-process.ts'
import { finish, MAIN, runCli, startCli } from './cli-runner.ts'
import { openTerminal } from './support/terminal.ts'
import { BOX, openFileApi, type FileApi } from './support/file-api.ts'

const MIB = 1024 * 1024

let api: FileApi
let proxy: FaultProxy
let here: string

beforeAll(async () => {
  api = await openFileApi()
  proxy = openFaultProxy({ target: { port: api.port } })
})
afterAll(async () => {
  proxy.close()
  await api[Symbol.asyncDispose]()
})
beforeEach(() => {
  here = mkdtempSync(join(tmpdir(), 'cli-copy-'))
})
afterEach(() => {
  api.override = undefined
  proxy.setFaults({ toClient: {}, toTarget: {}, newConnections: 'accept' })
  rmSync(here, { recursive: true, force: true })
  for (const name of readdirSync(there())) rmSync(there(name), { recursive: true, force: true })
})

/** A path in the workspace of the sandbox. */
function there(path = '.'): string {
  return join(api.sandboxd.workspace, path)
}

function argvOf(words: readonly string[], url = api.url): [string, ...string[]] {
  return [process.execPath, MAIN, ...words, '--url', url]
}

const ENV = { SBX_TOKEN: `swl_${'t'.repeat(43)}` }

/** Runs a command in this process, straight to the sandbox. */
function cli(...words: string[]): Promise<CommandRun> {
  return runInProcess([...words, '--url', api.url], { env: ENV })
}

/** Runs a command in this process, through the proxy that fails. */
function cliOverProxy(...words: string[]): Promise<CommandRun> {
  return runInProcess([...words, '--url', proxy.url], { env: ENV })
}

function randomBytes(size: number, seed = 1): Buffer {
  const random = new Random(seed)
  const words = new Uint32Array(Math.ceil(size / 4))
  for (let at = 0; at < words.length; at += 1) words[at] = random.word()
  return Buffer.from(words.buffer, 0, size)
}

/** Kinds, modes, times to the microsecond, sizes and targets of all that is below a folder; names of any bytes. */
function factsOf(folder: string): string {
  const { stdout } = Bun.spawnSync(['find', '.', '-mindepth', '1', '-printf', '%P\\t%M\\t%T@\\t%s\\t%l\\0'], {
    cwd: folder,
  })
  return stdout
    .toString('latin1')
    .split('\0')
    .map((line) => {
      const [path = '', mode = '', time = '', size = '', target = ''] = line.split('\t')
      // Few file systems keep times of links; sizes of folders are arbitrary.
      const shownTime = mode.startsWith('l') ? '' : Number(time).toFixed(4)
      return [path, mode, shownTime, mode.startsWith('d') ? '' : size, target].join(' | ')
    })
    .toSorted()
    .join('\n')
}

function sumsOf(folder: string): string {
  const { stdout } = Bun.spawnSync(
    ['sh', '-c', 'find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum'],
    {
      cwd: folder,
    },
  )
  return stdout.toString('latin1')
}

function makeNastyTree(base: string): void {
  mkdirSync(join(base, 'empty'), { recursive: true })
  mkdirSync(join(base, 'd/'.repeat(40)), { recursive: true })
  writeFileSync(join(base, `${'d/'.repeat(40)}f`), 'deep')
  writeFileSync(join(base, 'n'.repeat(255)), 'long')
  writeFileSync(join(base, 'new\nline \u{1f984} -rf\x1b]0;x\x07'), 'odd')
  writeFileSync(Buffer.concat([Buffer.from(`${base}/`), Buffer.from([0xc3, 0x28, 0xff])]), 'bytes')
  writeFileSync(join(base, 'run'), '#!/bin/sh\n')
  chmodSync(join(base, 'run'), 0o755)
  writeFileSync(join(base, 'closed'), 'closed')
  chmodSync(join(base, 'closed'), 0o000)
  mkdirSync(join(base, 'read-only'))
  writeFileSync(join(base, 'read-only/f'), 'in it')
  chmodSync(join(base, 'read-only'), 0o555)
  symlinkSync('run', join(base, 'link'))
  symlinkSync('../empty', join(base, 'read-only-link'))
  rmSync(join(base, 'read-only-link'))
  symlinkSync('nowhere', join(base, 'dangling'))
  writeFileSync(join(base, 'large'), randomBytes(5 * MIB))
  utimesSync(join(base, 'run'), 1_600_000_000, 1_600_000_000.25)
  utimesSync(join(base, 'empty'), 1_500_000_000, 1_500_000_000)
}

describe('cp', () => {
  test('copies a tree with unusual names and modes to the sandbox and back unchanged', async () => {
    makeNastyTree(join(here, 'tree'))
    const up = await cli('cp', join(here, 'tree'), `${BOX}:`)
    expect([up.stderr, up.code]).toEqual(['', 0])
    expect(factsOf(there('tree'))).toBe(factsOf(join(here, 'tree')))
    const down = await cli('cp', `${BOX}:tree`, join(here, 'back'))
    expect([down.stderr, down.code]).toEqual(['', 0])
    expect(factsOf(join(here, 'back'))).toBe(factsOf(join(here, 'tree')))
    expect(sumsOf(join(here, 'back'))).toBe(sumsOf(join(here, 'tree')))
    // A copy over a copy changes nothing.
    expect((await cli('cp', `${here}/tree/.`, `${BOX}:tree`)).code).toBe(0)
    expect((await cli('cp', `${BOX}:tree/.`, join(here, 'back'))).code).toBe(0)
    expect(factsOf(there('tree'))).toBe(factsOf(join(here, 'tree')))
    expect(factsOf(join(here, 'back'))).toBe(factsOf(join(here, 'tree')))
  })

  test('resolves targets like cp, to the sandbox', async () => {
    mkdirSync(join(here, 'dir/sub'), { recursive: true })
    writeFileSync(join(here, 'dir/sub/f'), 'f')
    writeFileSync(join(here, 'file'), 'content')
    mkdirSync(there('into'))
    const rows: [string, string, string][] = [
      ['file', ':', 'file'],
      ['file', ':other', 'other'],
      ['file', ':into', 'into/file'],
      ['file', ':into/', 'into/file'],
      ['file', ':into/named', 'into/named'],
      ['dir', ':new', 'new/sub/f'],
      ['dir', ':into', 'into/dir/sub/f'],
      ['dir/', ':into/slash/', 'into/slash/sub/f'],
      ['dir/.', ':into', 'into/sub/f'],
    ]
    for (const [from, to, found] of rows) {
      const { stderr, code } = await cli('cp', `${here}/${from}`, `${BOX}${to}`)
      expect([from, to, stderr, code, existsSync(there(found))]).toEqual([from, to, '', 0, true])
    }
    const wrong: [string, string][] = [
      ['file', ':missing/f'],
      ['file', ':missing/'],
      ['dir', ':other'],
      ['nothing', ':'],
    ]
    for (const [from, to] of wrong)
      expect([to, (await cli('cp', `${here}/${from}`, `${BOX}${to}`)).code]).toEqual([to, 2])
  })

  test('resolves targets like cp, from the sandbox', async () => {
    mkdirSync(there('dir/sub'), { recursive: true })
    writeFileSync(there('dir/sub/f'), 'f')
    writeFileSync(there('file'), 'content')
    mkdirSync(join(here, 'into'))
    const rows: [string, string, string][] = [
      [':file', '', 'file'],
      [':file', 'other', 'other'],
      [':./file', 'into/', 'into/file'],
      [':dir', 'new', 'new/sub/f'],
      [':dir/', 'into', 'into/dir/sub/f'],
      [':dir/.', 'into', 'into/sub/f'],
      [':', 'all', 'all/dir/sub/f'],
    ]
    for (const [from, to, found] of rows) {
      const { stderr, code } = await cli(
        'cp',
        `${BOX}${from}`,
        join(here, to) + (to.endsWith('/') ? '/' : ''),
      )
      expect([from, to, stderr, code, existsSync(join(here, found))]).toEqual([from, to, '', 0, true])
    }
    const wrong: [string, string][] = [
      [':file', 'missing/f'],
      [':file', 'missing/'],
      [':dir', 'other'],
      [':nothing', ''],
    ]
    for (const [from, to] of wrong) {
      expect([from, to, (await cli('cp', `${BOX}${from}`, `${here}/${to}`)).code]).toEqual([from, to, 2])
    }
  })

  test('reads stdin and writes stdout', async () => {
    const bytes = randomBytes(9 * MIB)
    const up = await runCli(argvOf(['cp', '-', `${BOX}:from-input`]), { input: bytes, env: ENV })
    expect([up.stderr, up.code]).toEqual(['', 0])
    expect(readFileSync(there('from-input')).equals(bytes)).toBe(true)
    const down = await runCli(argvOf(['cp', `${BOX}:from-input`, '-']), { env: ENV })
    expect([down.stderr, down.code, down.stdout.equals(bytes)]).toEqual(['', 0, true])
  })

  test('sends hundreds of small files in few requests', async () => {
    for (let at = 0; at < 300; at += 1) {
      if (at % 100 === 0) mkdirSync(join(here, `many/${at / 100}`), { recursive: true })
      writeFileSync(join(here, `many/${Math.floor(at / 100)}/${at}`), `content ${at}`)
    }
    const before = api.requests.length
    expect((await cli('cp', join(here, 'many'), `${BOX}:`)).code).toBe(0)
    expect((await cli('cp', `${BOX}:many`, join(here, 'back'))).code).toBe(0)
    expect(api.requests.length - before).toBeLessThan(20)
    expect(sumsOf(join(here, 'back'))).toBe(sumsOf(join(here, 'many')))
  })

  test('resumes the upload of a large file after disconnects', async () => {
    writeFileSync(join(here, 'large'), randomBytes(20 * MIB))
    proxy.disconnectAfterBytes('toTarget', 5 * MIB)
    proxy.disconnectAfterBytes('toTarget', 9 * MIB)
    const before = proxy.stats
    const { stderr, code } = await cliOverProxy('cp', join(here, 'large'), `${BOX}:large`)
    expect([stderr, code]).toEqual(['', 0])
    expect(proxy.stats.disconnects - before.disconnects).toBe(2)
    expect(sumsOf(there())).toBe(sumsOf(here))
    expect(readdirSync(there())).toEqual(['large'])
    // A disconnect costs at most what was sent before it, and a piece of 8 MiB while the sandbox still stores what arrived.
    const mostMib = 20 + (5 + 8) + (9 + 8)
    expect(proxy.stats.bytesToTarget - before.bytesToTarget).toBeLessThan((mostMib + 1) * MIB)
  })

  test('resumes the download of a large file after disconnects', async () => {
    writeFileSync(there('large'), randomBytes(20 * MIB))
    proxy.disconnectAfterBytes('toClient', 5 * MIB)
    proxy.disconnectAfterBytes('toClient', 9 * MIB, 'fin')
    const before = proxy.stats
    const { stderr, code } = await cliOverProxy('cp', `${BOX}:large`, join(here, 'large'))
    expect([stderr, code]).toEqual(['', 0])
    expect(proxy.stats.disconnects - before.disconnects).toBe(2)
    expect(sumsOf(here)).toBe(sumsOf(there()))
    expect(proxy.stats.bytesToClient - before.bytesToClient).toBeLessThan(21 * MIB)
  })

  test('restarts a file that changed while it was disconnected', async () => {
    writeFileSync(there('large'), randomBytes(8 * MIB, 1))
    proxy.disconnectAfterBytes('toClient', 3 * MIB)
    const { disconnects } = proxy.stats
    const copied = cliOverProxy('cp', `${BOX}:large`, join(here, 'large'))
    await eventually(() => proxy.stats.disconnects > disconnects, { what: 'the disconnect' })
    proxy.setFaults({ newConnections: 'refuse' })
    writeFileSync(there('large'), randomBytes(7 * MIB, 2))
    proxy.setFaults({ newConnections: 'accept' })
    expect((await copied).code).toBe(0)
    expect(sumsOf(here)).toBe(sumsOf(there()))
  })

  test.each(['up', 'down'] as const)('resumes a folder after disconnects on its way %s', async (way) => {
    const [from, to] = way === 'up' ? [here, there()] : [there(), here]
    mkdirSync(join(from, 'tree'))
    for (let at = 0; at < 40; at += 1) writeFileSync(join(from, `tree/${at}`), randomBytes(150_000, at))
    writeFileSync(join(from, 'tree/large'), randomBytes(12 * MIB))
    const direction = way === 'up' ? 'toTarget' : 'toClient'
    proxy.disconnectAfterBytes(direction, 3 * MIB)
    proxy.disconnectAfterBytes(direction, 9 * MIB)
    const before = proxy.stats
    const words = way === 'up' ? [join(here, 'tree'), `${BOX}:`] : [`${BOX}:tree`, join(here, 'tree')]
    const { stderr, code } = await cliOverProxy('cp', ...words)
    expect([stderr, code]).toEqual(['', 0])
    expect(proxy.stats.disconnects - before.disconnects).toBe(2)
    expect(factsOf(join(to, 'tree'))).toBe(factsOf(join(from, 'tree')))
    expect(sumsOf(to)).toBe(sumsOf(from))
  })

  test('fails with the reason when the server stays unreachable', async () => {
    writeFileSync(there('large'), randomBytes(4 * MIB))
    api.override = (request) =>
      request.method === 'GET' && request.url.includes('/file')
        ? Response.json(
            { error: { code: 'sandbox_unreachable', message: 'The sandbox does not answer' } },
            {
              status: 502,
              headers: { 'retry-after': '0' },
            },
          )
        : undefined
    const { stderr, code } = await cli('cp', `${BOX}:large`, join(here, 'large'))
    expect([stderr.split('\n')[0], code]).toEqual(['sbx-stdio: The sandbox does not answer', 255])
    expect(readdirSync(here)).toEqual([])
  })

  test('starts a stopped sandbox, and reports it', async () => {
    writeFileSync(there('file'), 'content')
    let isStopped = true
    api.override = (request, url) => {
      if (request.method === 'POST' && url.pathname === `/api/sandboxes/${BOX}/start`) {
        isStopped = false
        return Response.json({ id: 'i', name: BOX, state: 'running', createdMs: 0 })
      }
      if (!isStopped) return undefined
      return Response.json(
        { error: { code: 'sandbox_stopped', message: 'The sandbox is stopped' } },
        { status: 409 },
      )
    }
    const { stderr, code } = await cli('cp', `${BOX}:file`, here)
    expect([stderr, code]).toEqual([`sbx-stdio: starting ${BOX}\n`, 0])
  })

  test('reports skipped entries in printable characters, and exits with 1 (threat T24)', async () => {
    mkdirSync(there('tree'))
    Bun.spawnSync(['mkfifo', there('tree/pi\x1b[31mpe')])
    symlinkSync('/etc/passwd', there('tree/out'))
    writeFileSync(there('tree/file'), 'x')
    const down = await cli('cp', `${BOX}:tree`, join(here, 'tree'))
    expect(down.code).toBe(1)
    expect(down.stderr).toContain('skipped "pi [31mpe": it is a special file')
    expect(down.stderr).toContain('skipped "out": the link points outside')
    expect(down.stderr).not.toContain('\x1b')
    Bun.spawnSync(['mkfifo', join(here, 'tree/pipe')])
    symlinkSync('../../x', join(here, 'tree/far'))
    const up = await cli('cp', `${here}/tree/.`, `${BOX}:tree`)
    expect(up.code).toBe(1)
    expect(up.stderr).toContain('skipped "pipe": it is a special file')
    expect(up.stderr).toContain('skipped "far": the link ')
  })

  test('prints a JSON summary that counts resumed entries once', async () => {
    mkdirSync(there('tree'))
    writeFileSync(there('tree/file'), 'four')
    Bun.spawnSync(['mkfifo', there('tree/in-between')])
    writeFileSync(there('tree/large'), randomBytes(3 * MIB))
    // Comes again from behind what is known to be there, or known not to be.
    proxy.disconnectAfterBytes('toClient', 500_000)
    const { stdout, stderr, code } = await cliOverProxy('cp', '--json', `${BOX}:tree`, join(here, 'tree'))
    expect(JSON.parse(stdout.toString())).toEqual({ entries: 2, bytes: 4 + 3 * MIB, leftOut: 1 })
    expect([stderr, code]).toEqual(['sbx-stdio: skipped "in-between": it is a special file\n', 1])
  })

  test('copies a growing file, and reports that it changed', async () => {
    mkdirSync(there('tree'))
    const script = 'while :; do printf "line\\n" >> log; done'
    const writer = Bun.spawn(['sh', '-c', script], { cwd: there('tree') })
    try {
      await eventually(() => existsSync(there('tree/log')), { what: 'the file' })
      const { stderr } = await cli('cp', `${BOX}:tree`, join(here, 'tree'))
      expect(stderr.replace('"log" changed while it was copied; check it\n', '')).toMatch(/^(sbx-stdio: )?$/)
      expect(readFileSync(join(here, 'tree/log'), 'utf8')).toMatch(/^(line\n)+/)
    } finally {
      writer.kill('SIGKILL')
      await writer.exited
    }
  })

  test('reports local errors as such', async () => {
    mkdirSync(there('tree'))
    writeFileSync(there('file'), 'x')
    writeFileSync(join(here, 'tree'), 'a file')
    mkdirSync(join(here, 'file'))
    symlinkSync('/proc', join(here, 'away'))
    for (const [source, target, why] of [
      ['tree', '.', 'a parent is not a folder'],
      ['file', '.', 'it is a folder'],
      ['file', 'away/new', 'no such file'],
    ] as const) {
      const { stderr, code } = await cli('cp', `${BOX}:${source}`, join(here, target))
      expect([stderr.split('\n')[0], code]).toEqual([
        `sbx-stdio: Cannot copy to "${join(here, target)}": ${why}`,
        2,
      ])
    }
    rmSync(join(here, 'tree'))
    symlinkSync('file', join(here, 'tree'))
    const through = await cli('cp', `${BOX}:tree`, here)
    expect(through.stderr).toContain('a parent is not a folder')
  })

  test('leaves nothing under the final name when it is interrupted', async () => {
    writeFileSync(there('large'), randomBytes(20 * MIB))
    writeFileSync(join(here, 'large'), 'older')
    proxy.setFaults({ toClient: { rateBytesPerSecond: MIB } })
    const child = startCli(argvOf(['cp', `${BOX}:large`, join(here, 'large')], proxy.url), ENV)
    const done = finish(child)
    await eventually(() => readdirSync(here).length === 2, { what: 'the file to arrive' })
    child.kill('SIGINT')
    const { code } = await done
    expect(code).toBe(130)
    expect(readdirSync(here)).toEqual(['large'])
    expect(readFileSync(join(here, 'large'), 'utf8')).toBe('older')
  })

  test('resumes an interrupted upload, and hints at it', async () => {
    const bytes = randomBytes(20 * MIB)
    writeFileSync(join(here, 'large'), bytes)
    proxy.setFaults({ toTarget: { rateBytesPerSecond: 8 * MIB } })
    const child = startCli(argvOf(['cp', join(here, 'large'), `${BOX}:`], proxy.url), ENV)
    const done = finish(child)
    await eventually(
      () =>
        readdirSync(there()).some(
          (name) => name.startsWith('.sandwire-upload-') && statSync(there(name)).size > 0,
        ),
      { what: 'a piece to arrive' },
    )
    child.kill('SIGINT')
    const { stderr, code } = await done
    expect([stderr, code]).toEqual([
      'sbx-stdio: interrupted; run the same command within a day to resume "large"\n',
      130,
    ])
    proxy.setFaults({ toTarget: {} })
    const again = await cli('cp', join(here, 'large'), `${BOX}:`)
    expect([again.stderr, again.code]).toEqual(['', 0])
    expect(readdirSync(there())).toEqual(['large'])
    expect(readFileSync(there('large')).equals(bytes)).toBe(true)
  })

  test('shows progress in one line, with escaped names (threat T24)', async () => {
    const name = 'file\x1b]0;owned\x07'
    writeFileSync(there(name), randomBytes(3 * MIB))
    proxy.setFaults({ toClient: { rateBytesPerSecond: 6 * MIB } })
    await using terminal = openTerminal({
      argv: argvOf(['cp', `${BOX}:${name}`, join(here, 'copy')], proxy.url),
      env: ENV,
    })
    await terminal.exit
    expect(statSync(join(here, 'copy')).size).toBe(3 * MIB)
    const output = terminal.rawOutput()
    expect(output).toMatch(/[0-9]+% {2}[0-9.]+ [KM]iB of 3\.0 MiB {2}[0-9.]+ [KM]?i?B\/s {2}0:0[0-9] left/)
    expect(output).not.toContain('\x1b]0')
    expect(output.split('\n').length).toBe(1)
  })

  test('exits like SIGPIPE when its reader is gone', async () => {
    writeFileSync(there('large'), randomBytes(20 * MIB))
    // Bash reads its startup file where stdin is a socket, as here.
    const line = `${argvOf(['cp', `${BOX}:large`, '-']).join(' ')} | head -c 5 | wc -c; echo "\${PIPESTATUS[0]}"`
    const { stdout, stderr } = await runCli(['bash', '--norc', '-c', line], { env: ENV })
    expect([stdout.toString(), stderr]).toEqual(['5\n141\n', ''])
  })

  // Only root may mount.
  test.skipIf(process.getuid?.() !== 0)(
    'reports a full disk of the sandbox, and leaves no partial file',
    async () => {
      mkdirSync(there('small'))
      expect(Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', there('small')]).success).toBe(
        true,
      )
      try {
        writeFileSync(join(here, 'large'), randomBytes(20 * MIB))
        mkdirSync(join(here, 'tree'))
        for (let at = 0; at < 10; at += 1) writeFileSync(join(here, `tree/${at}`), randomBytes(MIB))
        for (const name of ['large', 'tree']) {
          const { stderr, code } = await cli('cp', join(here, name), `${BOX}:small`)
          expect([
            stderr.includes('no space left on the disk'),
            stderr.includes('free disk space'),
            code,
          ]).toEqual([true, true, 255])
          expect(readdirSync(there('small')).filter((each) => each !== 'tree')).toEqual([])
          for (const file of readdirSync(there('small'))) rmSync(there(`small/${file}`), { recursive: true })
        }
      } finally {
        Bun.spawnSync(['umount', '--lazy', there('small')])
      }
    },
  )

  test('refuses two local or two remote sides, and invalid arguments', async () => {
    for (const words of [
      ['a', 'b'],
      [`${BOX}:a`, `${BOX}:b`],
      [`${BOX}:a`],
      [],
      [`${BOX}:/etc/passwd`, here],
    ])
      expect([words, (await cli('cp', ...words)).code]).toEqual([words, 2])
  })
})

describe('ls', () => {
  beforeEach(() => {
    mkdirSync(there('dir'))
    writeFileSync(there('dir/b'), 'content')
    writeFileSync(Buffer.concat([Buffer.from(there('dir/')), Buffer.from([0x61, 0xff])]), '')
    writeFileSync(there('dir/\x1b[31m'), '')
    mkdirSync(there('dir/sub'))
    utimesSync(there('dir/b'), 1_600_000_000, 1_600_000_000)
  })

  test('prints raw names to a pipe, one per line', async () => {
    const { stdout, stderr, code } = await cli('ls', `${BOX}:dir`)
    expect([stdout.toString('latin1'), stderr, code]).toEqual(['\x1b[31m\na\xff\nb\nsub\n', '', 0])
    expect((await cli('ls', `${BOX}:dir/b`)).stdout.toString()).toBe('b\n')
    expect((await cli('ls', BOX)).stdout.toString()).toBe('dir\n')
  })

  test('escapes names for a terminal, and in the long form (threat T24)', async () => {
    await using terminal = openTerminal({ argv: argvOf(['ls', `${BOX}:dir`]), env: ENV })
    await terminal.exit
    expect(terminal.rawOutput().split('\r\n')).toEqual(['\\x1b[31m', 'a\\xff', 'b', 'sub', ''])
    const { stdout } = await cli('ls', '-l', `${BOX}:dir`)
    expect(stdout.toString()).not.toContain('\x1b')
    expect(stdout.toString()).toMatch(/^-rw-r--r-- +7 {2}2020-09-1[34] {8}b$/m)
    expect(stdout.toString()).toMatch(
      /^drwxr-xr-x +[0-9]+ {2}[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} {2}sub$/m,
    )
  })

  test('accepts combined short options, and shows link targets', async () => {
    symlinkSync('sub', there('dir/link'))
    const apart = await cli('ls', '-l', '-a', `${BOX}:dir`)
    const together = await cli('ls', '-la', `${BOX}:/workspace/dir`)
    expect([together.stdout.toString(), together.code]).toEqual([apart.stdout.toString(), 0])
    expect(together.stdout.toString()).toMatch(/ link -> \(a folder\)$/m)
    expect((await cli('ls', '-lx', `${BOX}:dir`)).stderr).toStartWith('sbx-stdio: Unknown option "-lx"\n')
  })

  test('prints JSON', async () => {
    const { stdout } = await cli('ls', `${BOX}:dir`, '--json')
    const answer: unknown = JSON.parse(stdout.toString())
    expect(answer).toMatchObject({
      path: 'dir',
      entries: [
        { name: '\x1b[31m' },
        { name: 'a\udcff' },
        { name: 'b', kind: 'file', size: 7 },
        { kind: 'folder' },
      ],
    })
  })

  test('reports a missing file', async () => {
    const { stderr, code } = await cli('ls', `${BOX}:no\x1b[31mthing`)
    expect([stderr.split('\n')[0], code]).toEqual([
      'sbx-stdio: Cannot list "no [31mthing": no such file in the sandbox',
      2,
    ])
    expect((await cli('cp', `${BOX}:nothing`, here)).code).toBe(2)
  })

  test('lists a folder of several pages', async () => {
    mkdirSync(there('many'))
    for (let at = 0; at < 1_100; at += 1) writeFileSync(there(`many/${at}`), '')
    const { stdout } = await cli('ls', `${BOX}:many`)
    expect(stdout.toString().trim().split('\n').length).toBe(1_100)
  })
})
