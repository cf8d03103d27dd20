import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { eventually, isAlive, readProcessTable } from '@sandwire/testing'
import { readShell, runShell } from './support/attached.ts'
import { type HostOptions, type RunningHost, startHost } from './support/control.ts'
import { AS_NOBODY, canBecomeNobody, NOBODY } from './support/nobody.ts'
import type { WireServer } from './support/wire-server.ts'

const CLI = resolve(import.meta.dir, '../../apps/cli/src/main.ts')

/** Users that start the host; every test runs for both. */
const USERS = [
  { who: 'the user who runs the tests', isNobody: false },
  ...(canBecomeNobody ? [{ who: 'an unprivileged user', isNobody: true }] : []),
]

let folder = ''
let data = ''
beforeEach(() => {
  folder = mkdtempSync('/tmp/up-sandboxes-')
  data = join(folder, 'data')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function optionsFor(isNobody: boolean, args: readonly string[] = []): HostOptions {
  mkdirSync(data, { recursive: true, mode: 0o700 })
  if (!isNobody) return { data, args }
  chownSync(folder, NOBODY, NOBODY)
  chownSync(data, NOBODY, NOBODY)
  return {
    data,
    args,
    prefix: AS_NOBODY,
    env: { HOME: folder, XDG_RUNTIME_DIR: undefined },
  }
}

/** A sandbox of the host as a server for the wire tests. */
function sandboxOf(host: RunningHost, sandbox = 'dev'): WireServer {
  return {
    port: host.port,
    headers: host.headers,
    sandbox,
    socketUrl: (path) => `ws://127.0.0.1:${host.port}${path}`,
    fetch: (path, init) => host.fetch(path.replace(/^\/sessions/, '/api/account/sessions'), init),
    stop: host.stop,
  }
}

/** Supervisors of this data folder's sandboxes, and everything below them. */
function processesOf(folderOfData: string): number[] {
  return readProcessTable()
    .map(({ pid }) => pid)
    .filter((pid) => commandOf(pid).includes(folderOfData))
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    // The process has ended.
    return ''
  }
}

async function makeSandbox(host: RunningHost): Promise<{ id: string }> {
  const response = await host.fetch('/api/sandboxes', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'dev' }),
  })
  return response.json()
}

async function sandboxesOf(host: RunningHost): Promise<{ name: string; state: string; id: string }[]> {
  const response = await host.fetch('/api/sandboxes')
  return (await response.json()).sandboxes
}

describe.each(USERS)('sandboxes of a host that $who started', ({ isNobody }) => {
  test('are created on first use by sbx-stdio, which discovers the server', async () => {
    await using host = await startHost(optionsFor(isNobody))
    const prefix = isNobody ? (optionsFor(true).prefix ?? []) : []
    const url = `http://localhost:${host.port}/attach`
    const argv = [...prefix, process.execPath, CLI, url, '--sandbox', 'dev', '--', 'sh', '-c', 'pwd; exit 3']
    const env = { ...process.env, XDG_CONFIG_HOME: join(data, 'config') }
    const run = Bun.spawn(argv, { env, stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
    const said = await new Response(run.stdout).text()
    expect([said, await run.exited]).toEqual(['/workspace\n', 3])
    expect(await sandboxesOf(host)).toEqual([expect.objectContaining({ name: 'dev', state: 'running' })])
    await host.stop()
  })

  test('survive a killed host, and the next host resumes them without losing a byte', async () => {
    const options = optionsFor(isNobody)
    await using first = await startHost(options)
    await using client = runShell(sandboxOf(first), 'while read line; do echo "got $line"; done; exit 7')
    await client.send('one\n')
    await client.waitFor('got one\n')
    first.kill('SIGKILL')
    await first.exited
    await client.send('two\n')
    await using second = await startHost({ ...options, args: ['--port', String(first.port)] })
    expect(second.output()).toContain('1 sandbox still running')
    await client.send('three\n')
    await client.waitFor('got three\n')
    client.handle.eof()
    expect((await client.exit).code).toBe(7)
    expect(client.text).toBe('got one\ngot two\ngot three\n')
    await second.stop()
  })

  test('stop with the host, leave no process and keep their files', async () => {
    const options = optionsFor(isNobody)
    await using first = await startHost(options)
    await readShell(sandboxOf(first), 'echo kept > file; setsid sleep 86321 >/dev/null 2>&1 &')
    const supervisors = processesOf(data)
    expect(supervisors.length).toBeGreaterThan(0)
    await first.stop()
    expect(supervisors.filter(isAlive)).toEqual([])
    expect(Bun.spawnSync(['pgrep', '-f', '^sleep 86321$']).exitCode).toBe(1)
    await using second = await startHost(options)
    expect(await readShell(sandboxOf(second), 'cat file')).toBe('kept\n')
    await second.stop()
  })

  test('record the stop reason in their log, and in their state unless the stop was requested', async () => {
    const options = optionsFor(isNobody)
    await using first = await startHost(options)
    const { id } = await makeSandbox(first)
    const order = (query: string): Promise<unknown> =>
      fetch(`http://host/sandboxes/${id}/stop${query}`, {
        method: 'POST',
        unix: join(data, 'run/host.sock'),
      }).then((response) => response.json())
    expect(await order('?reason=idle')).toEqual({ id, state: 'stopped', reason: 'idle' })
    await first.fetch('/api/sandboxes/dev/start', { method: 'POST' })
    await readShell(sandboxOf(first), 'true')
    expect(await order('')).toEqual({ id, state: 'stopped' })
    await readShell(sandboxOf(first), 'true')
    await first.stop()
    await using second = await startHost(options)
    expect(await (await second.fetch('/api/sandboxes/dev')).json()).toMatchObject({
      state: 'stopped',
      reason: 'shutting_down',
    })
    const log = (await (await second.fetch('/logs/dev')).text()).split('\n').filter((line) => line !== '')
    const ends = log
      .map((line) => JSON.parse(line))
      .filter(({ event, source }) => event === 'stopping' && source === 'supervisor')
    expect(ends.map(({ reason }) => reason)).toEqual(['idle', 'requested', 'shutting_down'])
    await second.stop()
  })

  test('[X13] send the stop reason to attached clients, and sbx-stdio prints a hint', async () => {
    await using host = await startHost(optionsFor(isNobody))
    const { id } = await makeSandbox(host)
    const order = (reason: string): Promise<Response> =>
      fetch(`http://host/sandboxes/${id}/stop?reason=${reason}`, {
        method: 'POST',
        unix: join(data, 'run/host.sock'),
      })
    const stopping = async (stop: () => Promise<unknown>): Promise<string> => {
      const words = [`http://127.0.0.1:${host.port}/attach`, '--token-file', join(data, 'local-token')]
      const command = ['--sandbox', 'dev', '--cmd', 'sh', '--arg', '-c', '--arg', 'echo up; exec sleep 600']
      const child = Bun.spawn([process.execPath, CLI, ...words, ...command], {
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const reader = child.stdout.getReader()
      expect(new TextDecoder().decode((await reader.read()).value)).toBe('up\n')
      const [said] = await Promise.all([new Response(child.stderr).text(), stop()])
      return said
    }
    const isIdle = await stopping(() => order('idle'))
    expect(isIdle).toContain('The sandbox is stopping because it was idle: it ends within 4 s\n')
    expect(isIdle).toContain('--pin')
    expect(isIdle).toContain('--sleep-after never')
    const isAsked = await stopping(() => host.fetch('/api/sandboxes/dev/stop', { method: 'POST' }))
    expect(isAsked).toContain('The sandbox is stopping on request: it ends within 4 s\n')
    expect(isAsked).not.toContain('--pin')
    expect(await stopping(() => host.stop())).toContain(
      'The sandbox is stopping because its host is shutting down: it ends within 4 s\n',
    )
  })

  test('are left alone by a copy of their data folder', async () => {
    const options = optionsFor(isNobody)
    await using original = await startHost(options)
    await using client = runShell(
      sandboxOf(original),
      'echo kept > file; while read l; do echo "got $l"; done',
    )
    await client.send('one\n')
    await client.waitFor('got one\n')
    const copied = join(folder, 'copy')
    expect(Bun.spawnSync(['cp', '-a', data, copied]).exitCode).toBe(0)
    await using copy = await startHost({ ...options, data: copied })
    expect(copy.output()).toContain(`This data folder is a copy of "${data}"`)
    expect(copy.output()).not.toContain('still running')
    expect(await sandboxesOf(copy)).toMatchObject([{ name: 'dev', state: 'stopped' }])
    const started = await copy.fetch('/api/sandboxes/dev/start', { method: 'POST' })
    // With root, both would run with the same user ids.
    expect(started.ok).toBe(isNobody)
    if (!isNobody) expect(await started.text()).toContain('it runs from another data folder')
    expect((await copy.fetch('/api/sandboxes/dev', { method: 'DELETE' })).status).toBe(204)
    await copy.stop()
    await client.send('two\n')
    await client.waitFor('got two\n')
    await original.stop()
  })

  test('keep running for the next host with --keep-sandboxes', async () => {
    const options = optionsFor(isNobody, ['--keep-sandboxes'])
    await using first = await startHost(options)
    await using client = runShell(sandboxOf(first), 'while read line; do echo "got $line"; done')
    await client.send('one\n')
    await client.waitFor('got one\n')
    await first.stop()
    await using second = await startHost({ ...optionsFor(isNobody), args: ['--port', String(first.port)] })
    expect(second.output()).toContain('1 sandbox still running')
    await client.send('two\n')
    await client.waitFor('got two\n')
    await second.stop()
  })

  test('are stopped and can be started again after their data folder was renamed', async () => {
    const renamed = join(folder, 'renamed')
    {
      await using host = await startHost(optionsFor(isNobody, ['--keep-sandboxes']))
      await readShell(sandboxOf(host), 'echo kept > file')
      await host.stop()
    }
    renameSync(data, renamed)
    await using host = await startHost({ ...optionsFor(isNobody), data: renamed })
    expect(host.output()).not.toContain('still running')
    expect(await sandboxesOf(host)).toMatchObject([{ name: 'dev', state: 'stopped' }])
    expect(await readShell(sandboxOf(host), 'cat file')).toBe('kept\n')
  })

  test('contain no secret of the host', async () => {
    await using host = await startHost(optionsFor(isNobody))
    const inside = await readShell(
      sandboxOf(host),
      'env; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null',
    )
    const files = ['local-token', 'keys/signing-key', 'keys/id-key']
    const seen = readProcessTable().map(({ pid }) => commandOf(pid) + environmentOf(pid))
    const id = (await sandboxesOf(host))[0]?.id ?? ''
    const written = await Bun.file(join(data, 'sandboxes', id, 'log.jsonl')).text()
    for (const file of files) {
      const secret = readFileSync(join(data, file), 'utf8').trim()
      expect(seen.filter((text) => text.includes(secret))).toEqual([])
      expect([inside, written].filter((text) => text.includes(secret))).toEqual([])
    }
    await host.stop()
  })

  test('can serve one existing folder, which survives destroy and gives access to nothing else (threat T39)', async () => {
    const served = join(folder, 'served')
    mkdirSync(served)
    writeFileSync(join(served, 'mine'), 'before\n')
    if (isNobody) for (const file of [served, join(served, 'mine')]) chownSync(file, NOBODY, NOBODY)
    await using host = await startHost(optionsFor(isNobody, ['--workspace', served]))
    expect(await readShell(sandboxOf(host, 'local'), 'pwd; cat mine; echo after >> mine')).toBe(
      '/workspace\nbefore\n',
    )
    expect(readFileSync(join(served, 'mine'), 'utf8')).toBe('before\nafter\n')
    // Processes run as the owner of the folder. If that is root, kernel settings in /proc are writable unless they are masked.
    const tries = ['sys/kernel/core_pattern', 'sysrq-trigger'].map(
      (name) => `(: >> /proc/${name}) && echo open`,
    )
    expect(await readShell(sandboxOf(host, 'local'), tries.join('; '))).toBe('')
    expect(
      (
        await host.fetch('/api/sandboxes', {
          method: 'POST',
          body: '{"name":"dev"}',
          headers: { 'content-type': 'application/json' },
        })
      ).ok,
    ).toBe(false)
    const [sandbox] = await sandboxesOf(host)
    expect((await host.fetch(`/api/sandboxes/${sandbox?.id}`, { method: 'DELETE' })).ok).toBe(true)
    expect(readdirSync(served)).toEqual(['mine'])
    await host.stop()
    expect(existsSync(join(served, 'mine'))).toBe(true)
  })
})

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch {
    // The process has ended or belongs to another user.
    return ''
  }
}

/** The last state that the supervisor of a sandbox wrote. */
function supervisorOf(id: string): { readonly state?: string; readonly pid?: number } {
  try {
    return JSON.parse(readFileSync(join(data, 'sandboxes', id, 'state.json'), 'utf8'))
  } catch {
    // Not started yet.
    return {}
  }
}

test('a sandbox whose supervisor was killed is not reported as running, and starts again', async () => {
  await using host = await startHost(optionsFor(false))
  const { id } = await makeSandbox(host)
  const kill = async (): Promise<void> => {
    const { pid = 0 } = supervisorOf(id)
    process.kill(pid, 'SIGKILL')
    await eventually(() => !isAlive(pid), { what: 'the end of the supervisor' })
  }
  await kill()
  const started = await (await host.fetch('/api/sandboxes/dev/start', { method: 'POST' })).json()
  expect(started).toMatchObject({ state: 'running' })
  expect(isAlive(supervisorOf(id).pid ?? 0)).toBe(true)
  expect(await readShell(sandboxOf(host), 'echo there')).toBe('there\n')
  await kill()
  await eventually(async () => (await sandboxesOf(host))[0]?.state === 'stopped', { what: 'the list' })
  expect(await (await host.fetch('/api/sandboxes/dev')).json()).toMatchObject({
    state: 'stopped',
    reason: 'supervisor_lost',
  })
  await host.stop()
})

test('a sandbox whose host was killed during its start is found by the next host', async () => {
  const options = optionsFor(false)
  await using first = await startHost(options)
  const body = JSON.stringify({ name: 'dev', start: false })
  const headers = { 'content-type': 'application/json' }
  const made = await (await first.fetch('/api/sandboxes', { method: 'POST', headers, body })).json()
  const { id } = made as { id: string }
  const starting = first.fetch('/api/sandboxes/dev/start', { method: 'POST' }).catch(() => undefined)
  await eventually(() => supervisorOf(id).state === 'starting', { what: 'the start' })
  first.kill('SIGKILL')
  await Promise.all([first.exited, starting])
  await eventually(() => supervisorOf(id).state === 'running', { what: 'the supervisor' })
  await using second = await startHost(options)
  const stateOf = async (): Promise<string | undefined> => (await sandboxesOf(second))[0]?.state
  await eventually(async () => (await stateOf()) === 'running', { what: 'the list' })
  expect(await (await second.fetch('/api/sandboxes/dev')).json()).toMatchObject({ state: 'running' })
  await second.stop()
  expect(processesOf(data)).toEqual([])
})

test('sandboxes without isolation work, and the host warns about them', async () => {
  await using host = await startHost({ ...optionsFor(false), env: { SANDWIRE_ISOLATION: 'none' } })
  expect(host.output()).toMatch(
    /Isolation {2}none, loopback only: commands in sandboxes .* Sandboxes are not isolated from this machine/,
  )
  expect(await readShell(sandboxOf(host), 'id -u')).toBe(`${process.getuid?.()}\n`)
  expect((await (await host.fetch('/readyz')).json()).dependencies.provider.isolation).toBe('none')
  await host.stop()
})

test('a second Ctrl-C ends the host at once, and the next host cleans up', async () => {
  const options = optionsFor(false)
  await using first = await startHost(options)
  // Ignores SIGTERM, so that stopping takes until the timeout.
  await using client = runShell(sandboxOf(first), "trap '' TERM HUP; echo ready; while :; do sleep 1; done")
  await client.waitFor('ready')
  first.kill('SIGINT')
  await eventually(() => first.output().includes('Stopping'), { what: 'the stop to begin' })
  // A signal that arrives sooner counts as the same Ctrl-C.
  await Bun.sleep(600)
  first.kill('SIGINT')
  expect((await first.exited).code).toBe(1)
  await using second = await startHost(options)
  await second.stop()
  expect(processesOf(data)).toEqual([])
})
