import { existsSync, readdirSync } from 'node:fs'
import { expect, test } from 'bun:test'
import { eventually, readProcessCounts } from '@sandwire/testing'
import { findBubblewrapProblem } from '../../apps/host/src/isolation/choose-isolation.ts'
import { KeptSandboxes } from './support/kept-sandboxes.ts'
import { findMachineTraces } from './support/machine-traces.ts'
import { findProcesses } from './support/process-list.ts'

/** `SANDWIRE_LEAK_SANDBOXES=200` for the long form. */
const SANDBOXES = Number(process.env['SANDWIRE_LEAK_SANDBOXES'] ?? 50)
/** What the runtime opens once and keeps is open after these. */
const WARM_UP = 8
/** Sandboxes at a time. */
const LANES = 4
const WAIT = { timeoutMs: 30_000 }

/** What the machine holds of the ids or the place. */
function findTraces(kept: KeptSandboxes, ids: ReadonlySet<string>): string[] {
  return [kept.folder, kept.settings.runBase, ...ids].flatMap((text) => findMachineTraces(text))
}

/** Every file of the place but the code of sandboxd, which all share. */
function listFiles(kept: KeptSandboxes): string[] {
  const below = (folder: string): string[] =>
    existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : []
  return [...below(kept.settings.dataFolder), ...below(kept.settings.runBase)].sort()
}

/** One sandbox's life, of one of several kinds. */
async function live(kept: KeptSandboxes, index: number, ids: Set<string>): Promise<void> {
  const spec = kept.spec(
    index % 5 === 4 ? { network: { policy: 'allowlist', allow: ['registry.example'] } } : {},
  )
  ids.add(spec.id)
  await kept.keeper.start(spec)
  switch (index % 4) {
    case 0:
      break
    case 1:
      await kept.run(spec.id, `(setsid sleep 600 &); nohup sleep 600 >/dev/null 2>&1 & echo up`)
      await kept.keeper.stop(spec.id)
      break
    case 2:
      process.kill(kept.supervisorPid(spec.id), 'SIGKILL')
      break
    case 3:
      await kept.attach(spec.id, `trap '' TERM HUP INT; while :; do sleep 1; done`)
  }
  await kept.keeper.destroy(spec.id)
}

const isolated = (await findBubblewrapProblem()) === undefined
for (const kind of isolated ? (['none', 'bubblewrap'] as const) : (['none'] as const))
  test(`(threat T40) ${SANDBOXES} sandboxes of every kind (${kind}) leave no process, mount, cgroup, socket or file`, async () => {
    await using kept = await KeptSandboxes.open(kind)
    const ids = new Set<string>()
    const liveMany = async (first: number, count: number): Promise<void> => {
      let next = first
      const lane = async (): Promise<void> => {
        while (next < first + count) await live(kept, next++, ids)
      }
      await Promise.all(Array.from({ length: LANES }, lane))
    }
    await liveMany(0, WARM_UP)
    expect(findTraces(kept, ids)).toEqual([])
    const before = listFiles(kept)
    const countsBefore = readProcessCounts(process.pid)
    await liveMany(WARM_UP, SANDBOXES)
    expect(ids.size).toBe(WARM_UP + SANDBOXES)
    await eventually(() => findProcesses(kept.folder).length === 0, { what: 'no process', ...WAIT })
    expect([...ids].flatMap((id) => findProcesses(id))).toEqual([])
    expect(findTraces(kept, ids)).toEqual([])
    expect(listFiles(kept)).toEqual(before)
    await eventually(() => readProcessCounts(process.pid).fds <= countsBefore.fds, {
      what: `${countsBefore.fds} descriptors of the host again`,
      ...WAIT,
    })
    expect(readProcessCounts(process.pid).zombies).toBeLessThanOrEqual(countsBefore.zombies)
  }, 600_000)
