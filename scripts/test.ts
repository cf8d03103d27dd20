// Runs the tests, in lanes beside each other. Arguments go to `bun test` and replace them:
// `npm test -- packages/protocol -t resumes`.

import path from 'node:path'

import {
  type Engine,
  obstacle,
  OBSTACLE_VARIABLE,
  startEngine,
} from '../test/e2e/support/container/engine.ts'
import { ensureSystemPackages } from './system-packages.ts'
import {
  addCounts,
  type Failure,
  FailureList,
  formatCounts,
  formatFailures,
  isGreen,
  noTests,
  parseTestSummary,
  type TestCounts,
} from './test-summary.ts'

/** End-to-end tests start real processes, which a busy machine delays by seconds. */
const testTimeoutMs = 60_000

/** The summary of `bun test` fits many times over. */
const tailChars = 64 * 1024

/** Failures that the end of a run shows. */
const shownFailures = 40

/** Tests of the wire that know nothing of what stands between the two ends. */
const wireTests = ['streams', 'terminal-input', 'sharing', 'cuts'].map((name) => `test/e2e/${name}.test.ts`)

interface RunOptions {
  readonly env?: Stage['env']
  /** Takes what is said; absent: it is passed on. */
  readonly tell?: (chunk: Uint8Array) => void
}

interface Stage {
  readonly name: string
  readonly patterns: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Runs only where there can be a container engine. */
  readonly needsEngine?: true
  /** Files of these patterns are of another stage. */
  readonly without?: readonly string[]
}

/** End-to-end tests of the command line, of containers, of files and of pages. */
const otherEnds = ['cli-*', 'container-*', 'workspace-*', 'workbench-*'].map(
  (name) => `test/e2e/${name}.test.ts`,
)

/** They run beside each other, since most tests wait most of the time, and those of one lane one after the other. */
const lanes: readonly (readonly Stage[])[] = [
  [{ name: 'e2e', patterns: ['test/e2e/**/*.test.ts'], without: otherEnds }],
  [{ name: 'e2e from other ends', patterns: [...otherEnds, 'test/contract/**/*.test.ts'] }],
  [
    {
      name: 'unit',
      patterns: ['packages', 'apps', 'scripts', 'deploy'].map((folder) => `${folder}/**/*.test.ts`),
    },
    { name: 'the wire through control', patterns: wireTests, env: { SANDWIRE_E2E: 'control' } },
    {
      name: 'the wire through containers',
      patterns: wireTests,
      env: { SANDWIRE_E2E: 'container' },
      needsEngine: true,
    },
  ],
]

const root = path.dirname(import.meta.dir)
/** Failed tests of all runs. */
const failures: Failure[] = []

function scan(patterns: readonly string[]): readonly string[] {
  return patterns.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root })])
}

function listFiles({ patterns, without = [] }: Stage): string[] {
  const others = new Set(scan(without))
  // A leading ./ makes bun take the argument as a file, not as a filter on names.
  return scan(patterns)
    .filter((file) => !file.includes('node_modules/') && !others.has(file))
    .toSorted()
    .map((file) => `./${file}`)
}

/** Runs `bun test`, tells what it says as it comes, and reads the counts from the end of it. */
async function runBunTest(
  args: readonly string[],
  { env: stageEnv = {}, tell = (chunk) => process.stderr.write(chunk) }: RunOptions = {},
): Promise<TestCounts> {
  const color = process.stderr.isTTY ? { FORCE_COLOR: '1' } : {}
  const child = Bun.spawn([process.execPath, 'test', `--timeout=${testTimeoutMs}`, ...args], {
    cwd: root,
    env: { ...process.env, ...color, ...stageEnv },
    stdio: ['inherit', 'inherit', 'pipe'],
  })
  const decoder = new TextDecoder()
  const failureList = new FailureList()
  let tail = ''
  for await (const chunk of child.stderr) {
    tell(chunk)
    const text = decoder.decode(chunk, { stream: true })
    failureList.push(text)
    tail = (tail + text).slice(-tailChars)
  }
  const status = await child.exited
  const counts = parseTestSummary(tail)
  failures.push(...failureList.failures)
  // A run that crashed, failed to load a file or lost its voice has no failed test to show for it.
  if (counts === undefined)
    failures.push({ title: `${args[0] ?? 'the tests'} …`, reason: 'the run ended without a summary' })
  const isSilent = counts === undefined || (status !== 0 && counts.failed === 0)
  return isSilent ? { ...(counts ?? noTests), failed: 1 } : counts
}

/**
 * One engine for all who need one: to start it for each would take longer than most of their tests. Where the machine does
 * not let one run, the tests that need it say so and are left out.
 */
async function openEngine(): Promise<Engine | undefined> {
  let reason = obstacle()
  try {
    if (reason === undefined) return await startEngine()
  } catch (error) {
    reason = error instanceof Error ? error.message : String(error)
  }
  console.error(`No tests with containers, because ${reason}`)
  process.env[OBSTACLE_VARIABLE] = reason.split('\n')[0]
  return undefined
}

/** What a lane says that is not the first comes at the end of each of its stages, so that lines of two do not mix. */
async function runLane(
  lane: readonly Stage[],
  engine: Engine | undefined,
  isFirst: boolean,
): Promise<TestCounts> {
  const shared: Record<string, string> = engine === undefined ? {} : { DOCKER_HOST: engine.host }
  let total = noTests
  for (const stage of lane) {
    const files = listFiles(stage)
    if (files.length === 0 || (stage.needsEngine === true && engine === undefined)) continue
    const title = `\n${stage.name}: ${files.length} files\n`
    const said: Uint8Array[] = [Buffer.from(title)]
    console.error(isFirst ? title : `${title.trim()}, told at their end`)
    const tell = isFirst ? {} : { tell: (chunk: Uint8Array) => void said.push(chunk) }
    total = addCounts(total, await runBunTest(files, { env: { ...shared, ...stage.env }, ...tell }))
    if (!isFirst) process.stderr.write(Buffer.concat(said))
  }
  return total
}

async function runLanes(): Promise<TestCounts> {
  await using engine = await openEngine()
  const counted = await Promise.all(lanes.map((lane, at) => runLane(lane, engine, at === 0)))
  return counted.reduce(addCounts)
}

ensureSystemPackages((line) => console.error(line))
const extra = process.argv.slice(2)
const counts = extra.length > 0 ? await runBunTest(extra) : await runLanes()
for (const line of formatFailures(failures, shownFailures)) console.log(line)
console.log(formatCounts(counts))
process.exitCode = isGreen(counts) ? 0 : 1
