import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { eventually, isAlive, rejectionOf } from '@sandwire/testing'
import { findBubblewrapProblem } from '../../apps/host/src/isolation/choose-isolation.ts'
import { expectRunning } from './support/sandbox-manager-contract.ts'
import { SandboxManagerFixture } from './support/sandbox-manager-fixture.ts'

let fixture: SandboxManagerFixture
beforeAll(async () => {
  fixture = await SandboxManagerFixture.open(
    (await findBubblewrapProblem()) === undefined ? 'bubblewrap' : 'none',
  )
})
afterEach(async () => {
  for (const { id } of await fixture.manager.list()) await fixture.manager.destroy(id)
})
afterAll(() => fixture[Symbol.asyncDispose]())

/** Targets of a process's open descriptors. */
function readDescriptors(pid: number): string[] {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).flatMap((fd) => {
    try {
      return [readlinkSync(path.join(folder, fd))]
    } catch {
      // Already closed.
      return []
    }
  })
}

/** Every file below a folder that other users can access, with its mode. */
function listOpenToOthers(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (name) => (statSync(path.join(folder, name)).mode & 0o077) !== 0,
  )
}

describe('a supervisor', () => {
  test('shares nothing with the host that started it', async () => {
    const marker = path.join(fixture.folder, 'marker')
    writeFileSync(marker, '')
    const fd = openSync(marker, 'r')
    process.env['SANDWIRE_TEST_SECRET'] = 'canary'
    try {
      const spec = fixture.spec()
      await fixture.manager.start(spec)
      const pid = fixture.supervisorPid(spec.id)
      const [, , session] = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) . /, '')
        .split(' ')
      expect(Number(session)).toBe(pid)
      expect(readDescriptors(pid)).not.toContain(marker)
      expect(readlinkSync(`/proc/${pid}/fd/0`)).toBe('/dev/null')
      await eventually(() => readlinkSync(`/proc/${pid}/fd/1`) === '/dev/null', {
        what: 'the output to be discarded',
      })
      expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toContain('canary')
      expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).not.toContain(spec.publicKey)
      expect(readlinkSync(`/proc/${pid}/cwd`)).toBe('/')
    } finally {
      delete process.env['SANDWIRE_TEST_SECRET']
      closeSync(fd)
    }
  })

  test('denies other users its files and control socket', async () => {
    const spec = fixture.spec()
    await fixture.manager.start(spec)
    expect(statSync(path.dirname(fixture.fileOf(spec.id, ''))).mode & 0o777).toBe(0o700)
    expect(listOpenToOthers(path.dirname(fixture.fileOf(spec.id, '')))).toEqual([])
    expect(listOpenToOthers(path.join(fixture.settings.runBase, 'control'))).toEqual([])
    expect(statSync(path.join(fixture.settings.runBase, 'control')).mode & 0o777).toBe(0o700)
  })

  test.skipIf(process.getuid?.() !== 0)('(threat T11) has no control socket inside the sandbox', async () => {
    const spec = fixture.spec()
    await fixture.manager.start(spec)
    const places = '/run /tmp /var /dev /etc /home /opt /workspace'
    const found = await fixture.run(
      spec.id,
      `find ${places} -name '${spec.id}.sock' 2>/dev/null; echo looked`,
    )
    expect(found).toBe('looked\n')
  })

  test('stops its sandbox cleanly on a signal', async () => {
    const spec = fixture.spec()
    await fixture.manager.start(spec)
    const pid = fixture.supervisorPid(spec.id)
    process.kill(pid, 'SIGHUP')
    const client = await fixture.attach(
      spec.id,
      `trap 'echo bye > said; exit' TERM HUP; echo up; while :; do sleep 0.1; done`,
    )
    await eventually(() => client.stdout.text === 'up\n', { what: 'the process' })
    process.kill(pid, 'SIGTERM')
    await client.closed
    await eventually(() => !isAlive(pid), { what: 'its end' })
    expect(await fixture.manager.status(spec.id)).toEqual({ id: spec.id, state: 'stopped' })
    expect(readdirSync(path.join(fixture.settings.runBase, 'control'))).toEqual([])
    await fixture.manager.start(spec)
    expect(await fixture.run(spec.id, 'cat said')).toBe('bye\n')
  })

  test('is not confused with a later process of the same pid', async () => {
    const spec = fixture.spec()
    await fixture.manager.start(spec)
    const file = fixture.fileOf(spec.id, 'state.json')
    const state = JSON.parse(readFileSync(file, 'utf8')) as { startTicks: number }
    await fixture.manager.stop(spec.id)
    const unrelated = Bun.spawn(['sleep', '600'])
    writeFileSync(file, JSON.stringify({ ...state, pid: unrelated.pid }))
    expect(await fixture.manager.status(spec.id)).toMatchObject({
      state: 'stopped',
      reason: 'supervisor_lost',
    })
    await fixture.manager.stop(spec.id)
    expect(isAlive(unrelated.pid)).toBe(true)
    unrelated.kill()
  })

  test('is killed when it does not respond', async () => {
    const spec = fixture.spec()
    await fixture.manager.start(spec)
    const pid = fixture.supervisorPid(spec.id)
    rmSync(path.join(fixture.settings.runBase, 'control', `${spec.id}.sock`))
    expectRunning(await fixture.manager.status(spec.id))
    expect(await fixture.manager.stop(spec.id)).toEqual({ id: spec.id, state: 'stopped' })
    expect(isAlive(pid)).toBe(false)
  })
})

describe('(threat T46) a start that fails', () => {
  async function failureOf(script: string, readyMs = 20_000): Promise<string> {
    await using broken = await SandboxManagerFixture.open('none', brokenDaemon(script))
    const spec = broken.spec()
    const error = await rejectionOf(broken.openManager({ readyMs }).start(spec))
    expect(error).toMatchObject({ code: 'sandbox_failed' })
    expect(await broken.manager.status(spec.id)).toMatchObject({ state: 'stopped' })
    const message = String(error)
    expect(message).not.toContain('/')
    return message
  }

  function brokenDaemon(script: string) {
    const folder = path.join(fixture.folder, 'broken')
    rmSync(folder, { force: true, recursive: true })
    Bun.spawnSync(['mkdir', folder])
    writeFileSync(path.join(folder, 'main.sh'), script)
    return { executable: '/bin/sh', code: { folder, entry: 'main.sh' } }
  }

  test('reports how sandboxd ended', async () => {
    expect(await failureOf('echo /etc/secret >&2; exit 3')).toContain('sandboxd ended with "exit_3"')
  })

  test('reports that sandboxd was not ready in time, and leaves no process', async () => {
    expect(await failureOf('exec sleep 86555', 500)).toContain('not ready in time')
    expect(Bun.spawnSync(['pgrep', '-f', '^sleep 86555$']).exitCode).toBe(1)
  })

  test('reports that the supervisor died', async () => {
    const manager = fixture.openManager({ supervisor: ['/bin/false'] })
    const error = await rejectionOf(manager.start(fixture.spec()))
    expect(error).toMatchObject({ code: 'sandbox_failed' })
    expect(String(error)).toContain('its supervisor died')
  })

  test('does not prevent a later start', async () => {
    const spec = fixture.spec()
    await rejectionOf(fixture.openManager({ supervisor: ['/bin/false'] }).start(spec))
    expectRunning(await fixture.manager.start(spec))
  })
})
