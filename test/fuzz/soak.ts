// Runs for long what `npm test` runs for short: `npm run soak -- [--cuts N] [--kills N] [--sandboxes N] [--swaps N] [--simulations N] [--seed N]`.
// Cuts live attachments and compares every byte; kills workerd and the host under transfers; makes and destroys sandboxes; does
// everything to files while folders are swapped with links that lead out. 0 leaves one out.

import { parseArgs } from 'node:util'
import { RESOLVERS } from '../../apps/sandboxd/src/workspace/files/files.fixture.ts'
import { runSwapRace } from '../../apps/sandboxd/src/workspace/files/swap-race.fixture.ts'
import { Deployment } from '../e2e/support/deployment.ts'
import { findLeaks } from '../e2e/support/sandbox-leaks.ts'
import { startSandboxd } from '../e2e/support/sandboxd.ts'
import { simulate } from '@sandwire/testing'
import { runDisconnectStress } from './disconnect-stress.ts'
import { runHostKillStress } from './host-kill-stress.ts'

const DEFAULT_CUTS = 10_000
const DEFAULT_KILLS = 1_000
const DEFAULT_SIMULATIONS = 100_000
const DEFAULT_SANDBOXES = 200
/** Operations on files, for each way to find a path. */
const DEFAULT_SWAPS = 100_000
/** Cuts of one session; then a new one begins, so that a run covers starts and ends as well. */
const CUTS_PER_SESSION = 250
const REPORT_EVERY_MS = 10_000
/** Sessions of each mode at a time: resuming is mostly waiting. */
const SESSIONS_PER_MODE = 4

function readWhole(text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback
  if (!/^[0-9]{1,9}$/.test(text)) throw new Error(`Cannot use "${text}": expected a whole number`)
  return Number(text)
}

const text = { type: 'string' } as const
const { values } = parseArgs({
  options: { cuts: text, kills: text, sandboxes: text, swaps: text, simulations: text, seed: text },
})
const firstSeed = readWhole(values.seed, crypto.getRandomValues(new Uint32Array(1))[0] ?? 0)
const startedMs = performance.now()

function say(line: string): void {
  console.log(`soak: ${line}, ${Math.round((performance.now() - startedMs) / 1000)} s`)
}

/** Says now and then how far a stage is. */
function reportEvery(line: () => string): Disposable {
  const timer = setInterval(() => say(line()), REPORT_EVERY_MS)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

/** Cuts sessions of a sandboxd in every way there is. */
async function soakCuts(wanted: number): Promise<void> {
  await using sandboxd = await startSandboxd()
  const totals = { cuts: 0, bytes: 0, sessions: 0 }
  let nextSeed = firstSeed
  let failure: Error | undefined
  const summary = (): string =>
    `${totals.cuts} of ${wanted} cuts, ${totals.sessions} sessions, ${Math.round(totals.bytes / 1e6)} MB each way`
  using _ = reportEvery(summary)
  const runStress = async (mode: 'pipe' | 'pty'): Promise<void> => {
    while (totals.cuts < wanted && failure === undefined) {
      const seed = nextSeed++
      const cuts = Math.min(CUTS_PER_SESSION, wanted - totals.cuts)
      let counted = 0
      const onCut = (done: number) => {
        totals.cuts += done - counted
        counted = done
      }
      try {
        const result = await runDisconnectStress({ server: sandboxd, mode, seed, cuts, onCut })
        totals.bytes += result.bytesEachWay
        totals.sessions++
        if (result.read !== result.written) throw new Error('The process read other bytes than were written')
        if (result.returned !== result.written) throw new Error('Other bytes came back than were written')
      } catch (error) {
        failure ??= new Error(`Failed in ${mode} mode with seed ${seed}`, { cause: error })
      }
    }
  }
  await Promise.all(
    Array.from({ length: SESSIONS_PER_MODE }, () => [runStress('pipe'), runStress('pty')]).flat(),
  )
  if (failure !== undefined) throw failure
  say(`passed ${summary()}`)
}

/** Kills workerd and the host under transfers. */
async function soakKills(wanted: number): Promise<void> {
  let kills = 0
  using _ = reportEvery(() => `${kills} of ${wanted} kills of workerd`)
  const result = await runHostKillStress({
    seed: firstSeed,
    kills: wanted,
    onKill: (done) => void (kills = done),
  })
  const at = (share: number): string =>
    (
      result.reattachMs[Math.floor(result.reattachMs.length * share)] ??
      result.reattachMs.at(-1) ??
      0
    ).toFixed(0)
  const times = `reattached after ${at(0.5)} ms at the median, ${at(0.99)} ms at p99, ${at(1)} ms at most`
  const megabytes = Math.round(result.bytesEachWay / 1e6)
  say(
    `passed ${result.kills} kills of workerd and ${result.hostKills} of the host, ${megabytes} MB each way, ${times}`,
  )
}

/** Makes and destroys sandboxes and looks for what is left. */
async function soakSandboxes(wanted: number): Promise<void> {
  await using deployment = await Deployment.open()
  using _ = reportEvery(() => `${deployment.ids.size} of ${wanted} sandboxes`)
  const left = await findLeaks(deployment, wanted)
  if (left.length > 0) throw new Error(`Left behind:\n${left.join('\n')}`)
  say(`passed ${deployment.ids.size} sandboxes made and destroyed, nothing left`)
}

/** Does everything to files while a folder on the way is swapped with a link that leads out (threat T14). */
async function soakSwaps(wanted: number): Promise<void> {
  for (const [name, resolve] of RESOLVERS) {
    const { escapes, done, refused } = await runSwapRace(resolve, wanted)
    if (escapes > 0) throw new Error(`${escapes} escapes with paths found by ${name}`)
    say(
      `passed ${wanted} operations under swaps with paths found by ${name}, ${done} done, ${refused} refused`,
    )
  }
}

/** Runs simulated sessions in virtual time. A failing seed is part of the error. */
function soakSimulations(wanted: number): Promise<void> {
  for (let done = 0; done < wanted; done += 1) {
    if (done > 0 && done % 10_000 === 0) say(`${done} of ${wanted} simulated sessions`)
    simulate(firstSeed + done)
  }
  say(`passed ${wanted} simulated sessions`)
  return Promise.resolve()
}

const stages = [
  { run: soakSimulations, count: readWhole(values.simulations, DEFAULT_SIMULATIONS) },
  { run: soakCuts, count: readWhole(values.cuts, DEFAULT_CUTS) },
  { run: soakKills, count: readWhole(values.kills, DEFAULT_KILLS) },
  { run: soakSandboxes, count: readWhole(values.sandboxes, DEFAULT_SANDBOXES) },
  { run: soakSwaps, count: readWhole(values.swaps, DEFAULT_SWAPS) },
]
say(`seed ${firstSeed}`)
for (const { run, count } of stages.filter((stage) => stage.count > 0))
  try {
    await run(count)
  } catch (error) {
    // What failed first, and what then failed while it was cleared up.
    const causes = error instanceof SuppressedError ? [error.suppressed, error.error] : [error]
    for (const cause of causes) console.error(cause)
    console.error(`soak: FAILED; run again with --seed ${firstSeed}`)
    process.exitCode = 1
  }
