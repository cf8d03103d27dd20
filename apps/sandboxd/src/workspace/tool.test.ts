import {
  chmodSync,
  chownSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { eventually, isAlive, readProcessCounts, rejectionOf } from '@sandwire/testing'
import { afterAll, expect, test } from 'bun:test'
import { INHERIT_OOM_SCORE } from '../processes/tree/oom-score.ts'
import { ProcessScanner } from '../processes/tree/process-scanner.ts'
import { SAME_USER, createUserContext } from '../processes/run-as.ts'
import { CANNOT_ENTER, createRunTool, type RunningTool, type ToolPlan } from './tool.ts'

const root = mkdtempSync(join(tmpdir(), 'run-tool-'))
const folder = openSync(root, 'r')
afterAll(() => {
  closeSync(folder)
  rmSync(root, { recursive: true })
})

const SECONDS_60 = 60_000
const children = new Set<number>()
const deps = {
  baseEnv: {
    PATH: '/usr/bin:/bin',
    HOME: '/nowhere',
    LANG: 'C.UTF-8',
    SECRET: 'x',
    RIPGREP_CONFIG_PATH: '/x',
  },
  user: SAME_USER,
  children,
  scanner: new ProcessScanner(),
  withOomScore: INHERIT_OOM_SCORE,
  now: () => performance.now(),
}
const runTool = createRunTool(deps)

function shell(script: string, plan: Partial<ToolPlan> = {}): Promise<RunningTool> {
  return runTool({ argv: ['sh', '-c', script], folder, timeMs: SECONDS_60, ...plan })
}

async function pidIn(name: string): Promise<number> {
  return eventually(() => Number(readFileSync(join(root, name), 'utf8')) || false, {
    what: `a pid in ${name}`,
  })
}

test('a tool runs in the folder with its arguments, input and exit code', async () => {
  const tool = await runTool({
    argv: ['sh', '-c', 'pwd -P; printf "%s|" "$@"; cat; echo oh >&2; exit 3', 'sh', 'a b', '$HOME', "'", ''],
    folder,
    stdin: new TextEncoder().encode('in'),
    timeMs: SECONDS_60,
  })
  expect(await new Response(tool.stdout).text()).toBe(`${root}\na b|$HOME|'||in`)
  expect(await tool.exited).toEqual({ code: 3, signal: null, isLate: false })
  expect(await tool.stderr).toBe('oh\n')
  expect(children.size).toBe(0)
})

test('runs in the opened folder, wherever it was moved', async () => {
  const parent = mkdtempSync(join(root, 'moved-'))
  const fd = openSync(mkdtempSync(join(parent, 'x-')), 'r')
  renameSync(parent, join(root, 'elsewhere'))
  const tool = await shell('pwd -P', { folder: fd })
  expect(await new Response(tool.stdout).text()).toStartWith(`${root}/elsewhere/x-`)
  closeSync(fd)
})

test('a tool gets PATH, HOME, the locale, the given variables and nothing else', async () => {
  const tool = await runTool({
    argv: ['env'],
    folder,
    env: { GIT_X: '1', HOME: '/else' },
    timeMs: SECONDS_60,
  })
  const lines = (await new Response(tool.stdout).text()).trim().split('\n').toSorted()
  expect(lines).toEqual([
    'GIT_X=1',
    'HOME=/else',
    'LANG=C.UTF-8',
    'PATH=/usr/bin:/bin',
    expect.stringMatching(/^SANDWIRE_SESSION=[0-9a-f-]{36}$/),
  ])
})

test('a tool has three descriptors', async () => {
  const tool = await runTool({ argv: ['ls', '-1', '/proc/self/fd'], folder, timeMs: SECONDS_60 })
  // The last descriptor is that of `ls` itself.
  expect(await new Response(tool.stdout).text()).toBe('0\n1\n2\n3\n')
})

test('reports a tool that is not installed', async () => {
  const error = await rejectionOf(runTool({ argv: ['no-such-tool'], folder, timeMs: 1_000 }))
  expect(error).toBeInstanceOf(SandwireError)
  expect(error).toMatchObject({
    code: 'command_not_found',
    message: 'Cannot start "no-such-tool": not found in PATH',
  })
})

test('does not run a program of the same name in the folder', async () => {
  await Bun.write(join(root, 'planted'), '#!/bin/sh\necho planted')
  Bun.spawnSync(['chmod', '+x', join(root, 'planted')])
  const relative = createRunTool({ ...deps, baseEnv: { PATH: '.::/usr/bin:/bin' } })
  const error = await rejectionOf(relative({ argv: ['planted'], folder, timeMs: 1_000 }))
  expect(error).toMatchObject({ code: 'command_not_found' })
})

test('applies backpressure to the tool', async () => {
  const tool = await shell('echo $$ >flood.pid; exec cat /dev/zero')
  const pid = await pidIn('flood.pid')
  const reader = tool.stdout.getReader()
  await reader.read()
  // It never blocks on input.
  await eventually(() => / S /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')), { what: 'the tool to wait' })
  const io = readFileSync(`/proc/${pid}/io`, 'utf8')
  expect(Number(/^wchar: (\d+)$/m.exec(io)?.[1])).toBeLessThan(4_000_000)
  await reader.cancel()
  await tool.exited
  expect(isAlive(pid)).toBe(false)
})

test('ends a tool with its descendants at the timeout and reports it', async () => {
  const tool = await shell('sleep 600 & echo $! >late.pid; setsid sleep 600 & wait', { timeMs: 300 })
  const pid = await pidIn('late.pid')
  expect(await tool.exited).toMatchObject({ code: null, isLate: true })
  expect(await new Response(tool.stdout).text()).toBe('')
  await eventually(() => !isAlive(pid), { what: 'its child to end' })
})

test.each([
  [
    'its signal',
    async (tool: RunningTool, controller: AbortController) => {
      controller.abort()
      await tool.stdout.cancel()
    },
  ],
  ['its reader', async (tool: RunningTool) => tool.stdout.cancel()],
])('a tool is ended by %s, with processes that left its group', async (name, end) => {
  const controller = new AbortController()
  const file = `${name.replace(' ', '-')}.pid`
  const tool = await shell(`setsid sh -c 'echo $$ >${file}; exec sleep 600' & wait`, {
    signal: controller.signal,
  })
  const pid = await pidIn(file)
  await end(tool, controller)
  expect(await tool.exited).toMatchObject({ isLate: false })
  await eventually(() => !isAlive(pid), { what: 'its child to end' })
})

test('ends a child that a tool leaves behind', async () => {
  const tool = await shell('sleep 600 & echo $! >left.pid')
  expect(await new Response(tool.stdout).text()).toBe('')
  expect(await tool.exited).toMatchObject({ code: 0 })
  expect(isAlive(await pidIn('left.pid'))).toBe(false)
})

test('keeps the end of stderr', async () => {
  const tool = await shell('head -c 1000000 /dev/zero | tr "\\0" x >&2; echo end >&2')
  await new Response(tool.stdout).text()
  const text = await tool.stderr
  expect(text).toEndWith('xxend\n')
  expect(text.length).toBeLessThanOrEqual(8 * 1024)
})

test('limits running and waiting tools', async () => {
  const few = createRunTool({ ...deps, limits: { capacity: 1, maxWaiting: 1, refusal: 'Cannot run more' } })
  const plan: ToolPlan = { argv: ['cat', '/dev/zero'], folder, timeMs: SECONDS_60 }
  const first = await few(plan)
  const leaver = new AbortController()
  const second = few({ ...plan, signal: leaver.signal })
  expect(await rejectionOf(few(plan))).toMatchObject({ code: 'rate_limited' })
  leaver.abort(new Error('gone'))
  expect(await rejectionOf(second)).toMatchObject({ message: 'gone' })
  const third = few({ ...plan, argv: ['echo', 'third'] })
  await first.stdout.cancel()
  expect(await new Response((await third).stdout).text()).toBe('third\n')
  // A tool that cannot start releases its slot.
  await (
    await third
  ).exited
  expect(await rejectionOf(few({ ...plan, argv: ['no-such-tool'] }))).toMatchObject({
    code: 'command_not_found',
  })
  expect(await new Response((await few({ ...plan, argv: ['echo', 'x'] })).stdout).text()).toBe('x\n')
})

test('tools leave no descriptor and no process behind', async () => {
  const turn = async (): Promise<void> => {
    const tool = await shell('echo hello; echo oh >&2')
    await new Response(tool.stdout).text()
    await Promise.all([tool.exited, tool.stderr])
    const flood = await shell('exec cat /dev/zero')
    await flood.stdout.cancel()
    await Promise.all([flood.exited, flood.stderr])
  }
  await turn()
  const before = readProcessCounts(process.pid)
  for (let count = 0; count < 10; count += 1) await turn()
  await eventually(() => readProcessCounts(process.pid).fds <= before.fds, {
    what: 'descriptors to be closed',
  })
  expect(readProcessCounts(process.pid).zombies).toBe(0)
})

test.skipIf(process.getuid?.() !== 0)(
  'a tool runs as the sandbox user, in a folder passed as a descriptor',
  async () => {
    const user = createUserContext({ uid: 61_234, gid: 61_235 })
    if ('problem' in user) throw new Error(user.problem)
    // The user may not traverse its parent, but may enter the folder.
    const own = mkdtempSync(join(root, 'own-'))
    chownSync(own, 61_234, 61_235)
    const fd = openSync(own, 'r')
    const asUser = createRunTool({ ...deps, user })
    const tool = await asUser({
      argv: ['sh', '-c', 'id -u; id -g; echo x >made'],
      folder: fd,
      timeMs: SECONDS_60,
    })
    expect(await new Response(tool.stdout).text()).toBe('61234\n61235\n')
    expect(statSync(join(own, 'made'))).toMatchObject({ uid: 61_234, gid: 61_235 })
    chmodSync(own, 0o400)
    const shut = await asUser({ argv: ['echo', 'x'], folder: fd, timeMs: SECONDS_60 })
    expect(await new Response(shut.stdout).text()).toBe('')
    expect(await shut.exited).toMatchObject({ code: CANNOT_ENTER })
    expect(await shut.stderr).toBe('cannot enter the folder\n')
    closeSync(fd)
  },
)
