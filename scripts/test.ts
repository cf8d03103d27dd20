// Runs the tests: units first, then end to end. Arguments go to `bun test` and replace the stages:
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
  FailureList,
  formatCounts,
  isGreen,
  noTests,
  parseTestSummary,
  type TestCounts,
} from './test-summary.ts'

/** End-to-end tests start real processes, which a busy machine delays by seconds. */
const testTimeoutMs = 60_000

/** The summary of `bun test` fits many times over. */
const tailChars = 64 * 1024

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
  /** Waits for nobody, so it runs beside the others, which mostly wait; what it says comes at its end. */
  readonly isBeside?: true
}

const stages: readonly Stage[] = [
  {
    name: 'unit',
    patterns: ['packages', 'apps', 'scripts', 'deploy'].map((folder) => `${folder}/**/*.test.ts`),
    isBeside: true,
  },
  { name: 'e2e', patterns: ['test/e2e/**/*.test.ts', 'test/contract/**/*.test.ts'] },
  { name: 'the wire through control', patterns: wireTests, env: { SANDWIRE_E2E: 'control' } },
  {
    name: 'the wire through containers',
    patterns: wireTests,
    env: { SANDWIRE_E2E: 'container' },
    needsEngine: true,
  },
]

const root = path.dirname(import.meta.dir)
/** Failed tests of all runs. */
const failures: string[] = []

function listFiles(patterns: readonly string[]): string[] {
  const files = patterns.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root })])
  // A leading ./ makes bun take the argument as a file, not as a filter on names.
  return files
    .filter((file) => !file.includes('node_modules/'))
    .sort()
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
  if (counts === undefined) failures.push(`${args[0] ?? 'the tests'} …: the run ended without a summary`)
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

async function runStages(): Promise<TestCounts> {
  await using engine = await openEngine()
  const shared: Record<string, string> = engine === undefined ? {} : { DOCKER_HOST: engine.host }
  const run = async (stage: Stage, tell?: RunOptions['tell']): Promise<TestCounts> => {
    const files = listFiles(stage.patterns)
    if (files.length === 0 || (stage.needsEngine === true && engine === undefined)) return noTests
    console.error(`\n${stage.name}: ${files.length} files`)
    return runBunTest(files, { env: { ...shared, ...stage.env }, ...(tell === undefined ? {} : { tell }) })
  }
  const runBeside = async (stage: Stage): Promise<TestCounts> => {
    const said: Uint8Array[] = []
    const counted = await run(stage, (chunk) => said.push(chunk))
    process.stderr.write(Buffer.concat([Buffer.from(`\n${stage.name}:\n`), ...said]))
    return counted
  }
  const beside = Promise.all(stages.filter(({ isBeside }) => isBeside === true).map(runBeside))
  let total = noTests
  for (const stage of stages.filter(({ isBeside }) => isBeside !== true))
    total = addCounts(total, await run(stage))
  return (await beside).reduce(addCounts, total)
}

ensureSystemPackages((line) => console.error(line))
const extra = process.argv.slice(2)
const counts = extra.length > 0 ? await runBunTest(extra) : await runStages()
for (const failure of failures) console.log(`failed: ${failure}`)
console.log(formatCounts(counts))
process.exitCode = isGreen(counts) ? 0 : 1
