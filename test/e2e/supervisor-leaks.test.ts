import { existsSync, readdirSync } from 'node:fs'
import { expect, test } from 'bun:test'
import { eventually, readProcessCounts } from '@sandwire/testing'
import { findBubblewrapProblem } from '../../apps/host/src/isolation/choose-isolation.ts'
import { SandboxManagerFixture } from './support/sandbox-manager-fixture.ts'
import { findLeftovers } from './support/leftovers.ts'
import { findProcesses } from './support/process-list.ts'

/** `SANDWIRE_LEAK_SANDBOXES=200` for a long run. */
const SANDBOXES = Number(process.env['SANDWIRE_LEAK_SANDBOXES'] ?? 8)
/** Sandboxes after which the runtime has opened what it keeps open. */
const WARM_UP = 5
/** Concurrent sandboxes. */
const LANES = 4

/** Mounts, sockets, control groups and loop devices of the fixture and its sandboxes. */
function findAllLeftovers(fixture: SandboxManagerFixture, ids: ReadonlySet<string>): string[] {
  return [fixture.folder, fixture.settings.runBase, ...ids].flatMap((text) => findLeftovers(text))
}

/** Every file of the fixture except sandboxd's code, which all sandboxes share. */
function listFiles(fixture: SandboxManagerFixture): string[] {
  const below = (folder: string): string[] =>
    existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : []
  return [...below(fixture.settings.dataFolder), ...below(fixture.settings.runBase)].sort()
}

/** Starts and destroys one sandbox; `index` selects how it ends. */
async function runLifecycle(fixture: SandboxManagerFixture, index: number, ids: Set<string>): Promise<void> {
  const spec = fixture.spec(
    index % 5 === 4 ? { network: { policy: 'allowlist', allow: ['registry.example'] } } : {},
  )
  ids.add(spec.id)
  await fixture.manager.start(spec)
  switch (index % 4) {
    case 0:
      break
    case 1:
      await fixture.run(spec.id, `(setsid sleep 600 &); nohup sleep 600 >/dev/null 2>&1 & echo up`)
      await fixture.manager.stop(spec.id)
      break
    case 2:
      process.kill(fixture.supervisorPid(spec.id), 'SIGKILL')
      break
    case 3:
      await fixture.attach(spec.id, `trap '' TERM HUP INT; while :; do sleep 1; done`)
  }
  await fixture.manager.destroy(spec.id)
}

const isolated = (await findBubblewrapProblem()) === undefined
for (const kind of isolated ? (['none', 'bubblewrap'] as const) : (['none'] as const))
  test(`(threat T40) ${SANDBOXES} sandboxes of every kind (${kind}) leave no process, mount, cgroup, socket or file`, async () => {
    await using fixture = await SandboxManagerFixture.open(kind)
    const ids = new Set<string>()
    const liveMany = async (first: number, count: number): Promise<void> => {
      let next = first
      const lane = async (): Promise<void> => {
        while (next < first + count) await runLifecycle(fixture, next++, ids)
      }
      await Promise.all(Array.from({ length: LANES }, lane))
    }
    await liveMany(0, WARM_UP)
    expect(findAllLeftovers(fixture, ids)).toEqual([])
    const before = listFiles(fixture)
    const countsBefore = readProcessCounts(process.pid)
    await liveMany(WARM_UP, SANDBOXES)
    expect(ids.size).toBe(WARM_UP + SANDBOXES)
    await eventually(() => findProcesses(fixture.folder).length === 0, { what: 'no process' })
    expect([...ids].flatMap((id) => findProcesses(id))).toEqual([])
    expect(findAllLeftovers(fixture, ids)).toEqual([])
    expect(listFiles(fixture)).toEqual(before)
    await eventually(() => readProcessCounts(process.pid).fds <= countsBefore.fds, {
      what: `${countsBefore.fds} descriptors of the host again`,
    })
    expect(readProcessCounts(process.pid).zombies).toBeLessThanOrEqual(countsBefore.zombies)
  }, 600_000)
