import { linkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { SandboxStatus } from '@sandwire/internal-api'
import { eventually, rejectionOf } from '@sandwire/testing'
import { planSlots } from '../../../apps/host/src/slots/slots.ts'
import { type KeptSandboxes, mintSandboxId } from './kept-sandboxes.ts'
import { findMachineTraces } from './machine-traces.ts'
import { findProcesses } from './process-list.ts'

/** Time for what a loaded machine does in a tenth of it. */
const WAIT = { timeoutMs: 20_000 }

type Running = Extract<SandboxStatus, { state: 'running' }>

export function expectRunning(status: SandboxStatus): Running {
  if (status.state !== 'running')
    throw new Error(`Expected a sandbox that runs, got ${JSON.stringify(status)}`)
  return status
}

async function isServed(kept: KeptSandboxes, { address }: Running): Promise<boolean> {
  return (await fetch('http://localhost/healthz', { unix: kept.socketOf(address) })).ok
}

/** What every keeper of sandboxes promises, whatever isolates them. */
export function describeKeeper(name: string, open: () => Promise<KeptSandboxes>): void {
  describe(`a keeper of ${name}`, () => {
    let kept: KeptSandboxes
    beforeAll(async () => {
      kept = await open()
    })
    afterAll(() => kept[Symbol.asyncDispose]())

    test('starts a sandbox once, however often it is asked', async () => {
      const spec = kept.spec()
      const all = await Promise.all(Array.from({ length: 5 }, () => kept.keeper.start(spec)))
      const first = expectRunning(await kept.keeper.start(spec))
      expect(all).toEqual(Array.from({ length: 5 }, () => first))
      expect(await isServed(kept, first)).toBe(true)
      expect(findProcesses(kept.fileOf(spec.id, 'spec.json'))).toHaveLength(1)
      expect(await kept.keeper.status(spec.id)).toEqual(first)
      expect(await kept.keeper.list()).toContainEqual(first)
      await kept.keeper.destroy(spec.id)
    })

    test('starts a sandbox once for two hosts', async () => {
      const spec = kept.spec()
      const others = [kept.openKeeper(), kept.openKeeper()]
      const [one, two] = await Promise.all(others.map((keeper) => keeper.start(spec)))
      expect(one).toEqual(two ?? { id: '', state: 'absent' })
      await eventually(() => findProcesses(kept.fileOf(spec.id, 'spec.json')).length === 1, {
        what: 'one supervisor',
        ...WAIT,
      })
      await kept.keeper.destroy(spec.id)
    })

    test('knows nothing of what was never started', async () => {
      const id = mintSandboxId()
      expect(await kept.keeper.status(id)).toEqual({ id, state: 'absent' })
      expect(await kept.keeper.stop(id)).toEqual({ id, state: 'absent' })
      expect(await kept.keeper.readLog(id, 1_000)).toBe('')
      await Promise.all([kept.keeper.destroy(id), kept.keeper.disconnect(id), kept.keeper.claim(id)])
    })

    test('keeps files over a stop, in the order asked, and none over a destroy', async () => {
      const spec = kept.spec({ env: { GREETING: 'hello there' } })
      const first = expectRunning(await kept.keeper.start(spec))
      await kept.run(spec.id, 'echo "$GREETING" > kept; echo home > ~/kept')
      const stopping = kept.keeper.stop(spec.id)
      const starting = kept.keeper.start(spec)
      expect(await stopping).toEqual({ id: spec.id, state: 'stopped' })
      const second = expectRunning(await starting)
      expect(second.epoch).not.toBe(first.epoch)
      expect(await kept.run(spec.id, 'cat kept ~/kept')).toBe('hello there\nhome\n')
      await kept.keeper.destroy(spec.id)
      expect(await kept.keeper.status(spec.id)).toEqual({ id: spec.id, state: 'absent' })
      await kept.keeper.start(spec)
      expect(await kept.run(spec.id, 'cat kept ~/kept; echo $?')).toBe('1\n')
      await kept.keeper.destroy(spec.id)
    })

    test('cuts connections and leaves the sandbox alone', async () => {
      const spec = kept.spec()
      const running = await kept.keeper.start(spec)
      const client = await kept.attach(spec.id, 'echo here; exec sleep 600')
      await eventually(() => client.stdout.text === 'here\n', { what: 'the process', ...WAIT })
      await kept.keeper.disconnect(spec.id)
      expect((await client.closed).code).toBe(1006)
      expect(await kept.keeper.status(spec.id)).toEqual(running)
      expect(await kept.run(spec.id, 'echo again')).toBe('again\n')
      await kept.keeper.destroy(spec.id)
    })

    test('(threat T11) has a way into its sandbox that nothing inside can turn elsewhere', async () => {
      const spec = kept.spec()
      await kept.keeper.start(spec)
      const socket = path.join(kept.settings.runBase, spec.id, 'io', 'sandboxd.sock')
      const decoy = path.join(kept.folder, 'decoy.sock')
      let visits = 0
      using server = Bun.serve({ unix: decoy, fetch: () => new Response(String((visits += 1))) })
      renameSync(socket, `${socket}.old`)
      for (const replace of [() => symlinkSync(decoy, socket), () => linkSync(decoy, socket)]) {
        replace()
        expect(await kept.run(spec.id, 'echo true')).toBe('true\n')
        rmSync(socket)
      }
      expect(visits).toBe(0)
      expect(server.pendingRequests).toBe(0)
      await kept.keeper.destroy(spec.id)
    })

    test('has fewer slots than sandboxes over time: each is free again after a stop', async () => {
      const keeper = kept.openKeeper({ slots: { ...planSlots(kept.settings, 2) } })
      const [one, two, three] = [kept.spec(), kept.spec(), kept.spec()]
      const first = expectRunning(await keeper.start(one))
      const second = expectRunning(await keeper.start(two))
      expect([first.address, second.address].toSorted()).toEqual(['slot:0', 'slot:1'])
      expect(await rejectionOf(keeper.start(three))).toMatchObject({ code: 'sandbox_failed' })
      await keeper.stop(one.id)
      expect(expectRunning(await keeper.start(three)).address).toBe(first.address)
      process.kill(kept.supervisorPid(two.id), 'SIGKILL')
      expect(expectRunning(await keeper.start(two)).address).toBe(second.address)
      await keeper.destroy(three.id)
      expect(expectRunning(await keeper.start(one)).address).toBe(first.address)
      for (const { id } of [one, two, three]) await keeper.destroy(id)
    })

    test('gives the last whole lines of the log', async () => {
      const spec = kept.spec()
      await kept.keeper.start(spec)
      const log = await eventually(async () => kept.keeper.readLog(spec.id, 64 * 1024), { what: 'a log' })
      const lines = log.trimEnd().split('\n')
      expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(
        expect.objectContaining({ event: 'running', source: 'supervisor' }),
      )
      const last = lines.at(-1) ?? ''
      expect(await kept.keeper.readLog(spec.id, last.length + 1)).toBe(`${last}\n`)
      expect(await kept.keeper.readLog(spec.id, last.length)).toBe('')
      await kept.keeper.destroy(spec.id)
    })

    test('(threat T40) finds its sandboxes again after the host is gone', async () => {
      const spec = kept.spec()
      const running = await kept.openKeeper().start(spec)
      const next = kept.openKeeper()
      expect(await next.adopt()).toContainEqual(running)
      expect(await next.start(spec)).toEqual(running)
      await next.close({ stop: false })
      expect(await kept.keeper.status(spec.id)).toEqual(running)
      await next.close({ stop: true })
      expect(await kept.keeper.status(spec.id)).toEqual({
        id: spec.id,
        state: 'stopped',
        reason: 'shutting_down',
      })
      await kept.keeper.destroy(spec.id)
    })

    test('(threat T40) a killed supervisor takes its sandbox with it, which starts again', async () => {
      const spec = kept.spec()
      await kept.keeper.start(spec)
      const mark = `86${Date.now() % 1e9}`
      const client = await kept.attach(spec.id, `setsid sleep ${mark} & echo up; exec sleep ${mark}`)
      await eventually(() => client.stdout.text === 'up\n', { what: 'the processes', ...WAIT })
      await eventually(() => findProcesses(mark).length >= 2, { what: 'the processes', ...WAIT })
      process.kill(kept.supervisorPid(spec.id), 'SIGKILL')
      await eventually(() => findProcesses(mark).length === 0 && findProcesses(spec.id).length === 0, {
        what: 'every process to go',
        timeoutMs: 5_000,
      })
      await eventually(async () => (await kept.keeper.status(spec.id)).state === 'stopped', {
        what: 'the loss to be noticed',
        timeoutMs: 5_000,
      })
      expect(await kept.keeper.status(spec.id)).toEqual({
        id: spec.id,
        state: 'stopped',
        reason: 'supervisor_lost',
      })
      expect(findMachineTraces(spec.id)).toEqual([])
      expectRunning(await kept.keeper.start(spec))
      expect(await kept.run(spec.id, 'echo again')).toBe('again\n')
      process.kill(kept.supervisorPid(spec.id), 'SIGKILL')
      await kept.keeper.destroy(spec.id)
      expect(await kept.keeper.status(spec.id)).toEqual({ id: spec.id, state: 'absent' })
    })

    test('(threat T40) starts again at once after its supervisor was killed, whatever did not want to end', async () => {
      const spec = kept.spec()
      const first = expectRunning(await kept.keeper.start(spec))
      const mark = `mark-${spec.id.slice(0, 8)}`
      const stubborn = `: ${mark}; trap '' TERM HUP INT; echo up; while :; do sleep 0.1; done`
      const client = await kept.attach(spec.id, stubborn)
      await eventually(() => client.stdout.text === 'up\n', { what: 'the process', ...WAIT })
      process.kill(kept.supervisorPid(spec.id), 'SIGKILL')
      const second = expectRunning(await kept.keeper.start(spec))
      expect(second.epoch).not.toBe(first.epoch)
      expect(findProcesses(mark)).toEqual([])
      expect(await kept.run(spec.id, 'echo again')).toBe('again\n')
      await kept.keeper.destroy(spec.id)
    })

    test('says why a sandbox ended by itself', async () => {
      const spec = kept.spec()
      await kept.keeper.start(spec)
      const daemon = findProcesses(spec.id).find(({ argv }) => argv[1]?.endsWith('main.js') === true)
      process.kill(daemon?.pid ?? Number.NaN, 'SIGKILL')
      const status = await eventually(
        async () => {
          const now = await kept.keeper.status(spec.id)
          return now.state === 'stopped' && now
        },
        { what: 'the end', ...WAIT },
      )
      expect(status).toMatchObject({ reason: expect.stringMatching(/^(exit|signal)_/) as unknown })
      expectRunning(await kept.keeper.start(spec))
      await kept.keeper.destroy(spec.id)
    })

    test('(threat T40) ends a sandbox that nobody claims, and none that somebody does', async () => {
      const keeper = kept.openKeeper({ unclaimedMs: 1_500 })
      const [wanted, forgotten] = [kept.spec(), kept.spec()]
      await Promise.all([keeper.start(wanted), keeper.start(forgotten)])
      await eventually(
        async () => {
          await keeper.claim(wanted.id)
          return (await keeper.status(forgotten.id)).state === 'stopped'
        },
        { what: 'the end of the unclaimed one', ...WAIT },
      )
      expect(await keeper.status(forgotten.id)).toMatchObject({ reason: 'unclaimed' })
      expectRunning(await keeper.status(wanted.id))
      await Promise.all([keeper.destroy(wanted.id), keeper.destroy(forgotten.id)])
    })

    test('(threat T7) takes nothing but a sandbox id', async () => {
      for (const id of [
        '',
        '..',
        'a/../b',
        '__proto__',
        `${mintSandboxId()}/`,
        mintSandboxId().toUpperCase(),
      ])
        expect(await rejectionOf(kept.keeper.status(id))).toMatchObject({ code: 'bad_request' })
    })
  })
}
