import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { Attached, runShell } from './support/attached.ts'
import { AS_NOBODY, nobodyProblem } from './support/nobody.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

/** The user `nobody` on Debian. */
const UID = 65_534
const isRoot = process.getuid?.() === 0

let sandboxd: RunningSandboxd
let workspace: string
let socketFolder: string

beforeAll(async () => {
  if (!isRoot) return
  workspace = mkdtempSync(join(tmpdir(), 'sandwire-run-as-'))
  // Only the user can enter it, not sandboxd.
  chownSync(workspace, UID, UID)
  chmodSync(workspace, 0o700)
  socketFolder = mkdtempSync(join(tmpdir(), 'sandwire-socket-'))
  writeFileSync(join(socketFolder, 'sandboxd.sock'), '')
  sandboxd = await startSandboxd({
    workspace,
    args: ['--run-as', `${UID}:${UID}`, '--shell', '/bin/sh'],
    env: { HOME: '/root', USER: 'root', SECRET_OF_SANDBOXD: 'canary' },
  })
})
afterAll(async () => {
  if (!isRoot) return
  await sandboxd.stop()
  for (const folder of [workspace, socketFolder]) rmSync(folder, { recursive: true, force: true })
})

/** Runs a script to its end. */
async function run(script: string, mode: 'pipe' | 'pty' = 'pipe'): Promise<{ text: string; exit: unknown }> {
  await using client = runShell(sandboxd, script, { mode })
  const exit = await client.exit
  return { text: client.text.replaceAll('\r', ''), exit }
}

function livingOf(uid: number): number {
  const found = Bun.spawnSync(['ps', '-o', 'pid=', '-u', String(uid)])
    .stdout.toString()
    .trim()
  return found === '' ? 0 : found.split('\n').length
}

describe.if(isRoot)('a process run as another user', () => {
  for (const mode of ['pipe', 'pty'] as const) {
    test(`has that user's uid, groups and environment, and no capabilities (${mode})`, async () => {
      const { text, exit } = await run(
        'id -u; id -G; echo "$HOME $USER $LOGNAME ${SECRET_OF_SANDBOXD-none}"; grep -E "^(Cap|NoNew)" /proc/self/status',
        mode,
      )
      expect(text.split('\n').slice(0, 3)).toEqual(['65534', '65534', '/nonexistent nobody nobody none'])
      for (const name of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
        expect(text).toContain(`${name}:\t0000000000000000`)
      expect(text).toContain('NoNewPrivs:\t1')
      expect(exit).toMatchObject({ code: 0 })
    })

    test(`can reopen its own streams (${mode})`, async () => {
      const { text } = await run(
        'echo out >/dev/stdout; echo err >/dev/stderr; : </dev/stdin && echo in',
        mode,
      )
      expect(text).toContain('out\n')
      expect(text).toContain('in\n')
      if (mode === 'pty') expect((await run('stat -c %u "$(tty)"', 'pty')).text).toBe('65534\n')
    })

    test(`[X5] ends with its own status (${mode})`, async () => {
      expect((await run('exit 44', mode)).exit).toMatchObject({ code: 44, signal: null })
      expect((await run('kill -KILL $$', mode)).exit).toMatchObject({ code: null, signal: 'SIGKILL' })
    })
  }

  test('controls a terminal: resize, Ctrl-C and job control work', async () => {
    await using client = runShell(
      sandboxd,
      'stty size; trap "echo caught; exit 3" INT; echo ready; while :; do sleep 0.1; done',
      {
        mode: 'pty',
      },
    )
    await client.waitFor('ready')
    expect(client.text).toContain('24 80')
    await client.send('\u0003')
    expect(await client.exit).toMatchObject({ code: 3 })
  })

  test('receives signals from sandboxd', async () => {
    await using client = runShell(sandboxd, 'trap "exit 7" USR1; echo ready; while :; do sleep 0.1; done')
    await client.waitFor('ready')
    client.handle.signal('SIGUSR1')
    expect(await client.exit).toMatchObject({ code: 7 })
  })

  test('owns the files that it creates, in a folder that only it can enter', async () => {
    expect((await run('mkdir made && echo x > made/file')).exit).toMatchObject({ code: 0 })
    const { uid, gid } = statSync(join(workspace, 'made/file'))
    expect([uid, gid]).toEqual([UID, UID])
    await using inside = new Attached(sandboxd, { cmd: 'pwd', cwd: 'made' })
    await inside.exit
    expect(inside.text.trim()).toBe(join(workspace, 'made'))
  })

  test("[X6] is looked up with its user's permissions", async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandwire-tools-'))
    const tool = join(folder, 'tool')
    writeFileSync(tool, '#!/bin/sh\necho ran\n', { mode: 0o700 })
    chmodSync(folder, 0o755)
    await using refused = new Attached(sandboxd, { cmd: tool })
    expect(await refused.exit).toMatchObject({ code: 126 })
    chmodSync(tool, 0o755)
    await using allowed = new Attached(sandboxd, { cmd: tool })
    expect(await allowed.exit).toMatchObject({ code: 0 })
    chmodSync(folder, 0o700)
    await using hidden = new Attached(sandboxd, { cmd: tool })
    expect(await hidden.exit).toMatchObject({ code: 127 })
    rmSync(folder, { recursive: true })
  })

  test('is refused a working directory that only sandboxd can enter', async () => {
    mkdirSync(join(workspace, 'private'), { mode: 0o700 })
    const response = await sandboxd.fetch('/sessions', {
      method: 'POST',
      body: JSON.stringify({ createId: '0'.repeat(32), cmd: 'pwd', cwd: 'private/x' }),
    })
    expect(response.status).toBe(400)
  })

  test('(threat T40) [X11] is ended with all its descendants', async () => {
    await using client = runShell(
      sandboxd,
      'trap "" HUP TERM; setsid sleep 1000 & (sleep 1000 &) ; nohup sleep 1000 >/dev/null 2>&1 & echo ready; while :; do sleep 0.1; done',
      { mode: 'pty' },
    )
    await client.waitFor('ready')
    const before = livingOf(UID)
    expect(before).toBeGreaterThanOrEqual(4)
    await sandboxd.fetch(`/sessions/${client.session}`, { method: 'DELETE' })
    await eventually(() => livingOf(UID) <= before - 4, { what: 'the processes to end' })
  })

  const probes: readonly [string, string][] = [
    ['read its environment', 'cat /proc/$D/environ'],
    ['read its memory', 'head -c1 /proc/$D/mem'],
    ['read its memory map', 'cat /proc/$D/maps'],
    ['list its descriptors', 'ls /proc/$D/fd/'],
    ['follow its descriptors', 'cat /proc/$D/fd/0'],
    ['enter its root', 'ls /proc/$D/root/'],
    ['enter its working directory', 'ls /proc/$D/cwd/'],
    ['signal it', 'kill -TERM $D'],
    ['stop it', 'kill -STOP $D'],
    ['lower its priority', 'renice 5 $D'],
    ['read its socket folder', 'ls $S/'],
    ['reach its socket', 'cat $S/sandboxd.sock'],
  ]
  for (const [what, script] of probes) {
    test(`(threat T11) cannot ${what}`, async () => {
      const { exit, text } = await run(`D=${sandboxd.pid}; S=${socketFolder}; ${script} 2>/dev/null`)
      expect(exit).not.toMatchObject({ code: 0 })
      expect(text).toBe('')
      expect((await sandboxd.fetch('/healthz')).status).toBe(200)
    })
  }

  test.if(Bun.which('strace') !== null)('(threat T11) cannot trace it', async () => {
    expect((await run(`timeout 5 strace -p ${sandboxd.pid} 2>&1`)).text).toMatch(/not permitted/)
  })
})

test.skipIf(nobodyProblem !== undefined)(
  'sandboxd reports why it cannot run processes as another user',
  async () => {
    const argv = isRoot ? AS_NOBODY : []
    const main = join(import.meta.dir, '../../apps/sandboxd/src/main.ts')
    const started = Bun.spawnSync([
      ...argv,
      process.execPath,
      main,
      '--insecure',
      '--listen',
      '127.0.0.1:0',
      '--run-as',
      '1:1',
    ])
    expect(started.exitCode).toBe(2)
    expect(started.stderr.toString()).toContain('the capability to change users is missing')
  },
)
