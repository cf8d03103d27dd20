import { linkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { SandboxStatus } from '@sandwire/internal-api'
import { eventually, rejectionOf } from '@sandwire/testing'
import { planSlots } from '../../../apps/host/src/slots/slots.ts'
import { type SandboxManagerFixture, mintSandboxId } from './sandbox-manager-fixture.ts'
import { findLeftovers } from './leftovers.ts'
import { findProcesses } from './process-list.ts'

type Running = Extract<SandboxStatus, { state: 'running' }>

export function expectRunning(status: SandboxStatus): Running {
  if (status.state !== 'running') throw new Error(`Expected a running sandbox, got ${JSON.stringify(status)}`)
  return status
}

async function isServed(fixture: SandboxManagerFixture, { address }: Running): Promise<boolean> {
  return (await fetch('http://localhost/healthz', { unix: fixture.socketOf(address) })).ok
}

/** The contract of `SandboxManager`, for every kind of isolation. */
export function describeSandboxManager(name: string, open: () => Promise<SandboxManagerFixture>): void {
  describe(`a sandbox manager of ${name}`, () => {
    let fixture: SandboxManagerFixture
    beforeAll(async () => {
      fixture = await open()
    })
    afterAll(() => fixture[Symbol.asyncDispose]())

    test('starts a sandbox once for repeated requests', async () => {
      const spec = fixture.spec()
      const all = await Promise.all(Array.from({ length: 5 }, () => fixture.manager.start(spec)))
      const first = expectRunning(await fixture.manager.start(spec))
      expect(all).toEqual(Array.from({ length: 5 }, () => first))
      expect(await isServed(fixture, first)).toBe(true)
      expect(findProcesses(fixture.fileOf(spec.id, 'spec.json'))).toHaveLength(1)
      expect(await fixture.manager.status(spec.id)).toEqual(first)
      expect(await fixture.manager.list()).toContainEqual(first)
      await fixture.manager.destroy(spec.id)
    })

    test('starts a sandbox once for two hosts', async () => {
      const spec = fixture.spec()
      const others = [fixture.openManager(), fixture.openManager()]
      const [one, two] = await Promise.all(others.map((manager) => manager.start(spec)))
      expect(one).toEqual(two ?? { id: '', state: 'absent' })
      await eventually(() => findProcesses(fixture.fileOf(spec.id, 'spec.json')).length === 1, {
        what: 'one supervisor',
      })
      await fixture.manager.destroy(spec.id)
    })

    test('reports a sandbox that was never started as absent', async () => {
      const id = mintSandboxId()
      expect(await fixture.manager.status(id)).toEqual({ id, state: 'absent' })
      expect(await fixture.manager.stop(id)).toEqual({ id, state: 'absent' })
      expect(await fixture.manager.readLog(id, 1_000)).toBe('')
      await Promise.all([
        fixture.manager.destroy(id),
        fixture.manager.disconnect(id),
        fixture.manager.claim(id),
      ])
    })

    test('keeps files over a stop and none over a destroy, and runs requests in order', async () => {
      const spec = fixture.spec({ env: { GREETING: 'hello there' } })
      const first = expectRunning(await fixture.manager.start(spec))
      await fixture.run(spec.id, 'echo "$GREETING" > kept; echo home > ~/kept')
      const stopping = fixture.manager.stop(spec.id)
      const starting = fixture.manager.start(spec)
      expect(await stopping).toEqual({ id: spec.id, state: 'stopped' })
      const second = expectRunning(await starting)
      expect(second.epoch).not.toBe(first.epoch)
      expect(await fixture.run(spec.id, 'cat kept ~/kept')).toBe('hello there\nhome\n')
      await fixture.manager.destroy(spec.id)
      expect(await fixture.manager.status(spec.id)).toEqual({ id: spec.id, state: 'absent' })
      await fixture.manager.start(spec)
      expect(await fixture.run(spec.id, 'cat kept ~/kept; echo $?')).toBe('1\n')
      await fixture.manager.destroy(spec.id)
    })

    test('closes connections and keeps the sandbox running', async () => {
      const spec = fixture.spec()
      const running = await fixture.manager.start(spec)
      const client = await fixture.attach(spec.id, 'echo here; exec sleep 600')
      await eventually(() => client.stdout.text === 'here\n', { what: 'the process' })
      await fixture.manager.disconnect(spec.id)
      expect((await client.closed).code).toBe(1006)
      expect(await fixture.manager.status(spec.id)).toEqual(running)
      expect(await fixture.run(spec.id, 'echo again')).toBe('again\n')
      await fixture.manager.destroy(spec.id)
    })

    test('(threat T11) connects to its sandbox even when its socket is replaced from inside', async () => {
      const spec = fixture.spec()
      await fixture.manager.start(spec)
      const socket = path.join(fixture.settings.runBase, spec.id, 'io', 'sandboxd.sock')
      // Beside it: hard links do not reach other file systems.
      const decoy = `${socket}.decoy`
      let visits = 0
      using server = Bun.serve({ unix: decoy, fetch: () => new Response(String((visits += 1))) })
      renameSync(socket, `${socket}.old`)
      for (const replace of [() => symlinkSync(decoy, socket), () => linkSync(decoy, socket)]) {
        replace()
        expect(await fixture.run(spec.id, 'echo true')).toBe('true\n')
        rmSync(socket)
      }
      expect(visits).toBe(0)
      expect(server.pendingRequests).toBe(0)
      await fixture.manager.destroy(spec.id)
    })

    test('frees a slot when its sandbox stops', async () => {
      const manager = fixture.openManager({ slots: { ...planSlots(fixture.settings, 2) } })
      const [one, two, three] = [fixture.spec(), fixture.spec(), fixture.spec()]
      const first = expectRunning(await manager.start(one))
      const second = expectRunning(await manager.start(two))
      expect([first.address, second.address].toSorted()).toEqual(['slot:0', 'slot:1'])
      expect(await rejectionOf(manager.start(three))).toMatchObject({ code: 'sandbox_failed' })
      await manager.stop(one.id)
      expect(expectRunning(await manager.start(three)).address).toBe(first.address)
      process.kill(fixture.supervisorPid(two.id), 'SIGKILL')
      expect(expectRunning(await manager.start(two)).address).toBe(second.address)
      await manager.destroy(three.id)
      expect(expectRunning(await manager.start(one)).address).toBe(first.address)
      for (const { id } of [one, two, three]) await manager.destroy(id)
    })

    test('returns the last complete lines of the log', async () => {
      const spec = fixture.spec()
      await fixture.manager.start(spec)
      const log = await eventually(async () => fixture.manager.readLog(spec.id, 64 * 1024), { what: 'a log' })
      const lines = log.trimEnd().split('\n')
      expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(
        expect.objectContaining({ event: 'running', source: 'supervisor' }),
      )
      const last = lines.at(-1) ?? ''
      expect(await fixture.manager.readLog(spec.id, last.length + 1)).toBe(`${last}\n`)
      expect(await fixture.manager.readLog(spec.id, last.length)).toBe('')
      await fixture.manager.destroy(spec.id)
    })

    test('(threat T40) adopts its sandboxes after a host restart', async () => {
      const spec = fixture.spec()
      const running = await fixture.openManager().start(spec)
      const next = fixture.openManager()
      expect(await next.adopt()).toContainEqual(running)
      expect(await next.start(spec)).toEqual(running)
      await next.close({ stop: false })
      expect(await fixture.manager.status(spec.id)).toEqual(running)
      await next.close({ stop: true })
      expect(await fixture.manager.status(spec.id)).toEqual({
        id: spec.id,
        state: 'stopped',
        reason: 'shutting_down',
      })
      await fixture.manager.destroy(spec.id)
    })

    test('(threat T40) stops a sandbox whose supervisor was killed, and starts it again', async () => {
      const spec = fixture.spec()
      await fixture.manager.start(spec)
      const mark = `86${Date.now() % 1e9}`
      const client = await fixture.attach(spec.id, `setsid sleep ${mark} & echo up; exec sleep ${mark}`)
      await eventually(() => client.stdout.text === 'up\n', { what: 'the processes' })
      await eventually(() => findProcesses(mark).length >= 2, { what: 'the processes' })
      process.kill(fixture.supervisorPid(spec.id), 'SIGKILL')
      await eventually(() => findProcesses(mark).length === 0 && findProcesses(spec.id).length === 0, {
        what: 'every process to go',
        timeoutMs: 5_000,
      })
      await eventually(async () => (await fixture.manager.status(spec.id)).state === 'stopped', {
        what: 'the stop to be reported',
        timeoutMs: 5_000,
      })
      expect(await fixture.manager.status(spec.id)).toEqual({
        id: spec.id,
        state: 'stopped',
        reason: 'supervisor_lost',
      })
      expect(findLeftovers(spec.id)).toEqual([])
      expectRunning(await fixture.manager.start(spec))
      expect(await fixture.run(spec.id, 'echo again')).toBe('again\n')
      process.kill(fixture.supervisorPid(spec.id), 'SIGKILL')
      await fixture.manager.destroy(spec.id)
      expect(await fixture.manager.status(spec.id)).toEqual({ id: spec.id, state: 'absent' })
    })

    test('records the reason of a stop during which the supervisor died', async () => {
      const spec = fixture.spec()
      await fixture.manager.start(spec)
      const supervisor = fixture.supervisorPid(spec.id)
      // It cannot answer the request, and dies before it has recorded the stop.
      process.kill(supervisor, 'SIGSTOP')
      const stopped = fixture.manager.stop(spec.id, 'idle')
      setTimeout(() => process.kill(supervisor, 'SIGKILL'), 50)
      expect(await stopped).toEqual({ id: spec.id, state: 'stopped', reason: 'idle' })
      await fixture.manager.destroy(spec.id)
    })

    test('(threat T40) starts a sandbox at once after its supervisor was killed, despite processes that ignore signals', async () => {
      const spec = fixture.spec()
      const first = expectRunning(await fixture.manager.start(spec))
      const mark = `mark-${spec.id.slice(0, 8)}`
      const ignoringSignals = `: ${mark}; trap '' TERM HUP INT; echo up; while :; do sleep 0.1; done`
      const client = await fixture.attach(spec.id, ignoringSignals)
      await eventually(() => client.stdout.text === 'up\n', { what: 'the process' })
      process.kill(fixture.supervisorPid(spec.id), 'SIGKILL')
      const second = expectRunning(await fixture.manager.start(spec))
      expect(second.epoch).not.toBe(first.epoch)
      expect(findProcesses(mark)).toEqual([])
      expect(await fixture.run(spec.id, 'echo again')).toBe('again\n')
      await fixture.manager.destroy(spec.id)
    })

    test('reports why a sandbox ended by itself', async () => {
      const spec = fixture.spec()
      await fixture.manager.start(spec)
      const daemon = findProcesses(spec.id).find(({ argv }) => argv[1]?.endsWith('main.js') === true)
      process.kill(daemon?.pid ?? Number.NaN, 'SIGKILL')
      const status = await eventually(
        async () => {
          const now = await fixture.manager.status(spec.id)
          return now.state === 'stopped' && now
        },
        { what: 'the end' },
      )
      expect(status).toMatchObject({ reason: expect.stringMatching(/^(exit|signal)_/) as unknown })
      expectRunning(await fixture.manager.start(spec))
      await fixture.manager.destroy(spec.id)
    })

    test('(threat T40) stops an unclaimed sandbox and keeps a claimed one', async () => {
      const manager = fixture.openManager({ unclaimedMs: 1_500 })
      const [wanted, forgotten] = [fixture.spec(), fixture.spec()]
      await Promise.all([manager.start(wanted), manager.start(forgotten)])
      await eventually(
        async () => {
          await manager.claim(wanted.id)
          return (await manager.status(forgotten.id)).state === 'stopped'
        },
        { what: 'the unclaimed sandbox to stop' },
      )
      expect(await manager.status(forgotten.id)).toMatchObject({ reason: 'unclaimed' })
      expectRunning(await manager.status(wanted.id))
      await Promise.all([manager.destroy(wanted.id), manager.destroy(forgotten.id)])
    })

    test('(threat T7) refuses anything but a sandbox id', async () => {
      for (const id of [
        '',
        '..',
        'a/../b',
        '__proto__',
        `${mintSandboxId()}/`,
        mintSandboxId().toUpperCase(),
      ])
        expect(await rejectionOf(fixture.manager.status(id))).toMatchObject({ code: 'bad_request' })
    })
  })
}
