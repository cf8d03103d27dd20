// Long runs of stress tests.
// Simulates sessions, and versions of files under crashes. Disconnects attachments, also through the fake Sprites API, and compares every byte; kills workerd and the host during transfers; creates and destroys sandboxes;
// runs file operations while folders are swapped with symlinks that lead outside; kills and freezes processes during operations and
// compares the state with a model; submits runs of coding agents at once; kills sandboxes, machines and servers while files are saved and restored; repeats requests and reports how the memory of each program grows. 0 skips a stage; if a stage has another number, only those with numbers run.

import { readOptions, readWholeNumber } from '../../scripts/read-options.ts'
import { simulateVersions } from '../../apps/control/test/support/versions-simulator/versions-simulator.ts'
import { RESOLVERS } from '../../apps/sandboxd/src/workspace/files/files.fixture.ts'
import { compareRandomTrees } from '../../apps/sandboxd/src/agents/base-tree/random-tree.fixture.ts'
import { runSwapRace } from '../../apps/sandboxd/src/workspace/files/swap-race.fixture.ts'
import { Deployment } from '../e2e/support/deployment.ts'
import { findLeaks } from '../e2e/support/sandbox-leaks.ts'
import { startSandboxd } from '../e2e/support/sandboxd.ts'
import { startSpritesServer, type WireServer } from '../e2e/support/wire-server.ts'
import { findFakeSpritesProblem } from '@sandwire/testing/fake-sprites'
import { Random, simulate } from '@sandwire/testing'
import { runDisconnectStress } from './disconnect-stress.ts'
import { runHostKillStress } from './host-kill-stress.ts'
import { submitRuns } from './many-runs.ts'
import { measureLeakSlopes } from './leak-slopes.ts'
import { describeRound, randomRound, StateTruth } from './state-truth.ts'
import { describeVersionRound, randomVersionRound, VersionFaults, RECOVERY_MS } from './version-faults.ts'
import { cycleProject } from './version-project.ts'

const DEFAULT_DISCONNECTS = 10_000
const DEFAULT_KILLS = 1_000
const DEFAULT_SIMULATIONS = 100_000
/** Simulated histories of versions. */
const DEFAULT_VERSIONS = 1_000
/** Kills during saves and restores. */
const DEFAULT_KEPT = 100
/** Age of changes that may be lost with a machine. */
const MAX_LOST_MS = 12_000
/** Saves and restores of a project that is built and tested. */
const DEFAULT_PROJECTS = 3
const DEFAULT_SANDBOXES = 200
const DEFAULT_FAULTS = 300
/** Attaches, PUTs and GETs each. */
const DEFAULT_LEAKS = 20_000
/** Random trees whose diff is applied to their base. */
const DEFAULT_TREES = 1_000
/** Runs of coding agents that are submitted at once. */
const DEFAULT_RUNS = 50
const TREES_PER_WORKSPACE = 100
/** Growth in the second half of a run, beyond that of a workerd without our code, that counts as a leak; garbage collected heaps vary by less. */
const MAX_LATE_GROWTH_BYTES = 32 * 1024 ** 2
/** Faults per deployment. */
const FAULTS_PER_DEPLOYMENT = 25
/** File operations per path resolver. */
const DEFAULT_SWAPS = 100_000
/** Disconnects per session; new sessions make a run cover starts and exits too. */
const DISCONNECTS_PER_SESSION = 250
const REPORT_EVERY_MS = 10_000
/** Concurrent sessions per mode: resuming is mostly waiting. */
const SESSIONS_PER_MODE = 4

function readWhole(value: string | undefined, fallback: number): number {
  return value === undefined ? fallback : readWholeNumber(value, USAGE)
}

const USAGE =
  'npm run soak -- [--disconnects N] [--sprites N] [--kills N] [--sandboxes N] [--swaps N] [--simulations N] [--versions N] [--kept N] [--projects N] [--faults N] [--leaks N] [--trees N] [--runs N] [--seed N]'
const text = { type: 'string' } as const
const values = readOptions(
  {
    disconnects: text,
    sprites: text,
    kills: text,
    sandboxes: text,
    swaps: text,
    simulations: text,
    versions: text,
    kept: text,
    projects: text,
    faults: text,
    leaks: text,
    trees: text,
    runs: text,
    seed: text,
  },
  USAGE,
)
const firstSeed = readWhole(values.seed, crypto.getRandomValues(new Uint32Array(1))[0] ?? 0)
const startedMs = performance.now()

function print(line: string): void {
  console.log(`soak: ${line}, ${Math.round((performance.now() - startedMs) / 1000)} s`)
}

/** Prints the progress of a stage periodically. */
function reportEvery(line: () => string): Disposable {
  const timer = setInterval(() => print(line()), REPORT_EVERY_MS)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

/** Disconnects sessions of a sandboxd with every kind of fault. */
async function soakDisconnects(wanted: number): Promise<void> {
  await using server = await startSandboxd()
  await breakStreams(server, wanted)
}

/** The same through control and a sprite, whose connections to control break too. */
async function soakSprites(wanted: number): Promise<void> {
  const problem = findFakeSpritesProblem()
  if (problem !== undefined) return print(`skipped disconnects through sprites: ${problem}`)
  const server = await startSpritesServer()
  try {
    await breakStreams(server, wanted)
  } finally {
    await server.stop()
  }
}

/** Disconnects concurrent sessions of a server, and compares every byte. */
async function breakStreams(server: WireServer, wanted: number): Promise<void> {
  const totals = { disconnects: 0, bytes: 0, sessions: 0 }
  let nextSeed = firstSeed
  let failure: Error | undefined
  const summary = (): string =>
    `${totals.disconnects} of ${wanted} disconnects, ${totals.sessions} sessions, ${Math.round(totals.bytes / 1e6)} MB each way`
  using _ = reportEvery(summary)
  const runStress = async (mode: 'pipe' | 'pty'): Promise<void> => {
    while (totals.disconnects < wanted && failure === undefined) {
      const seed = nextSeed++
      const disconnects = Math.min(DISCONNECTS_PER_SESSION, wanted - totals.disconnects)
      let counted = 0
      const onDisconnect = (done: number) => {
        totals.disconnects += done - counted
        counted = done
      }
      try {
        const result = await runDisconnectStress({ server, mode, seed, disconnects, onDisconnect })
        totals.bytes += result.bytesEachWay
        totals.sessions++
        if (result.read !== result.written)
          throw new Error('The process read different bytes than were written')
        if (result.returned !== result.written) throw new Error('The echo differs from the bytes written')
      } catch (error) {
        failure ??= new Error(`Failed in ${mode} mode with seed ${seed}`, { cause: error })
      }
    }
  }
  await Promise.all(
    Array.from({ length: SESSIONS_PER_MODE }, () => [runStress('pipe'), runStress('pty')]).flat(),
  )
  if (failure !== undefined) throw failure
  print(`passed ${summary()}`)
}

/** Kills workerd and the host during transfers. */
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
  print(
    `passed ${result.kills} kills of workerd and ${result.hostKills} of the host, ${megabytes} MB each way, ${times}`,
  )
}

/** Creates and destroys sandboxes and searches for leftovers. */
async function soakSandboxes(wanted: number): Promise<void> {
  await using deployment = await Deployment.open()
  using _ = reportEvery(() => `${deployment.ids.size} of ${wanted} sandboxes`)
  const left = await findLeaks(deployment, wanted)
  if (left.length > 0) throw new Error(`Left behind:\n${left.join('\n')}`)
  print(`passed ${deployment.ids.size} sandboxes created and destroyed, nothing left`)
}

/** Runs file operations while a folder on their path is swapped with a symlink that leads outside (threat T14). */
async function soakSwaps(wanted: number): Promise<void> {
  for (const [name, resolve] of RESOLVERS) {
    const { escapes, done, refused } = await runSwapRace(resolve, wanted)
    if (escapes > 0) throw new Error(`${escapes} escapes with paths resolved by ${name}`)
    print(
      `passed ${wanted} operations under swaps with paths resolved by ${name}, ${done} done, ${refused} refused`,
    )
  }
}

/** Kills and freezes processes during operations. The random numbers of a deployment start from its own seed. */
async function soakFaults(wanted: number): Promise<void> {
  let done = 0
  let slowestMs = 0
  using _ = reportEvery(() => `${done} of ${wanted} faults`)
  for (let seed = firstSeed; done < wanted; seed += 1) {
    const random = new Random(seed)
    await using truth = await StateTruth.open()
    for (let index = 0; index < FAULTS_PER_DEPLOYMENT && done < wanted; index += 1) {
      const round = randomRound(random)
      try {
        await truth.run(round)
      } catch (error) {
        throw new Error(`Failed at ${describeRound(round)}, fault ${index} of seed ${seed}`, { cause: error })
      }
      done += 1
    }
    slowestMs = Math.max(slowestMs, truth.slowestMs)
  }
  const seconds = (slowestMs / 1000).toFixed(1)
  print(`passed ${done} faults; list, show, files, names and grants were true within ${seconds} s of each`)
}

/** Repeats attach, exec, PUT and GET and reports the growth of workerd, host and sandboxd. */
async function soakLeaks(wanted: number): Promise<void> {
  let progress = ''
  using _ = reportEvery(() => progress)
  const slopes = await measureLeakSlopes(wanted, (operation, done) => {
    progress = `${done} times ${operation}`
  })
  const megabytes = (bytes: number): string => (bytes / 1024 ** 2).toFixed(0)
  for (const { operation, program, firstBytes, lastBytes, bytesPerOperation } of slopes)
    print(
      `${operation}: ${program} ${megabytes(firstBytes)} to ${megabytes(lastBytes)} MiB, at the end ${bytesPerOperation.toFixed(0)} bytes per operation`,
    )
  // workerd grows by itself, and levels off.
  const baselines = new Map(
    slopes.flatMap(({ operation, program, lateGrowthBytes }) =>
      program === 'bare workerd' ? [[operation, lateGrowthBytes]] : [],
    ),
  )
  const leaks = slopes.filter(({ operation, program, lateGrowthBytes }) => {
    const baseline = program === 'workerd' ? Math.max(0, baselines.get(operation) ?? 0) : 0
    return program !== 'bare workerd' && lateGrowthBytes > MAX_LATE_GROWTH_BYTES + baseline
  })
  if (leaks.length > 0)
    throw new Error(
      `Growing: ${leaks.map(({ operation, program }) => `${program} by ${operation}`).join(', ')}`,
    )
  print('passed attach, exec, PUT and GET without growth')
}

/** Runs simulated sessions in virtual time. A failing seed is part of the error. */
function soakSimulations(wanted: number): Promise<void> {
  for (let done = 0; done < wanted; done += 1) {
    if (done > 0 && done % 10_000 === 0) print(`${done} of ${wanted} simulated sessions`)
    simulate(firstSeed + done)
  }
  print(`passed ${wanted} simulated sessions`)
  return Promise.resolve()
}

/** Runs simulated histories of versions with crashes. A failing seed is part of the error. */
async function soakVersions(wanted: number): Promise<void> {
  for (let done = 0; done < wanted; done += 1) {
    if (done > 0 && done % 250 === 0) print(`${done} of ${wanted} simulated histories of versions`)
    await simulateVersions(firstSeed + done)
  }
  print(`passed ${wanted} simulated histories of versions`)
}

/** Kills programs and machines while files are saved and restored; measures what is lost and how long recovery takes. */
async function soakKept(wanted: number): Promise<void> {
  const recoveries: number[] = []
  const losses: number[] = []
  using _ = reportEvery(() => `${recoveries.length} of ${wanted} kills during saves and restores`)
  const random = new Random(firstSeed)
  await using faults = await VersionFaults.open()
  for (let done = 0; done < wanted; done += 1) {
    const round = randomVersionRound(random)
    try {
      const { recoveryMs, lostMs } = await faults.run(round)
      recoveries.push(recoveryMs)
      if (round.victim === 'machine') losses.push(lostMs)
    } catch (error) {
      throw new Error(`Failed at ${describeVersionRound(round)}, kill ${done}`, { cause: error })
    }
  }
  const describe = (times: readonly number[]): string =>
    [0.5, 0.95, 1].map((share) => `${(quantile(times, share) / 1000).toFixed(1)} s`).join(', ')
  print(`recovery time (p50, p95, most): ${describe(recoveries)}; lost changes: ${describe(losses)}`)
  if (Math.max(...recoveries) > RECOVERY_MS) throw new Error('A recovery took too long')
  if (Math.max(0, ...losses) > MAX_LOST_MS) throw new Error('Too much was lost')
  print(`passed ${wanted} kills during saves and restores`)
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

/** Saves, loses and restores a project that is installed, built and tested in the sandbox. */
async function soakProjects(wanted: number): Promise<void> {
  await cycleProject(wanted, (done) => print(`project restored, built and tested ${done} of ${wanted} times`))
  print(`passed ${wanted} saves and restores of a project`)
}

/** Submits runs at once; those beyond the ceiling of the account wait, and each returns its diff. */
async function soakRuns(wanted: number): Promise<void> {
  const { mostBytes, mostAtWork } = await submitRuns(wanted)
  const mebibytes = Math.round(mostBytes / 1024 ** 2)
  print(
    `passed ${wanted} runs submitted at once: at most ${mostAtWork} at work, ${mebibytes} MiB of their agents`,
  )
}

/** Compares random trees before and after random changes. A failing seed is part of the error. */
async function soakTrees(wanted: number): Promise<void> {
  for (let done = 0; done < wanted; done += TREES_PER_WORKSPACE) {
    const seed = firstSeed + done
    try {
      await compareRandomTrees(new Random(seed), Math.min(TREES_PER_WORKSPACE, wanted - done))
    } catch (error) {
      throw new Error(`Failed with seed ${seed}`, { cause: error })
    }
  }
  print(`passed ${wanted} random trees, each made of its base by its diff`)
}

/** Some stages have a number; the others are skipped. */
const isNarrowed = Object.entries(values).some(([name, value]) => name !== 'seed' && value !== '0')
const countOf = (text: string | undefined, fallback: number): number =>
  readWhole(text, isNarrowed ? 0 : fallback)

const stages = [
  { run: soakSimulations, count: countOf(values.simulations, DEFAULT_SIMULATIONS) },
  { run: soakVersions, count: countOf(values.versions, DEFAULT_VERSIONS) },
  { run: soakKept, count: countOf(values.kept, DEFAULT_KEPT) },
  { run: soakProjects, count: countOf(values.projects, DEFAULT_PROJECTS) },
  { run: soakDisconnects, count: countOf(values.disconnects, DEFAULT_DISCONNECTS) },
  { run: soakSprites, count: countOf(values.sprites, DEFAULT_DISCONNECTS) },
  { run: soakKills, count: countOf(values.kills, DEFAULT_KILLS) },
  { run: soakSandboxes, count: countOf(values.sandboxes, DEFAULT_SANDBOXES) },
  { run: soakSwaps, count: countOf(values.swaps, DEFAULT_SWAPS) },
  { run: soakFaults, count: countOf(values.faults, DEFAULT_FAULTS) },
  { run: soakTrees, count: countOf(values.trees, DEFAULT_TREES) },
  { run: soakRuns, count: countOf(values.runs, DEFAULT_RUNS) },
  { run: soakLeaks, count: countOf(values.leaks, DEFAULT_LEAKS) },
]
print(`seed ${firstSeed}`)
for (const { run, count } of stages.filter((stage) => stage.count > 0))
  try {
    await run(count)
  } catch (error) {
    // The first failure, then failures of the cleanup.
    const causes = error instanceof SuppressedError ? [error.suppressed, error.error] : [error]
    for (const cause of causes) console.error(cause)
    console.error(`soak: FAILED; run again with --seed ${firstSeed}`)
    process.exitCode = 1
  }
