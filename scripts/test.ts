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

interface Stage {
  readonly name: string
  readonly patterns: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Runs only where there can be a container engine. */
  readonly needsEngine?: true
}

const stages: readonly Stage[] = [
  {
    name: 'unit',
    patterns: ['packages', 'apps', 'scripts', 'deploy'].map((folder) => `${folder}/**/*.test.ts`),
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
const failureList = new FailureList()

function listFiles(patterns: readonly string[]): string[] {
  const files = patterns.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root })])
  // A leading ./ makes bun take the argument as a file, not as a filter on names.
  return files
    .filter((file) => !file.includes('node_modules/'))
    .sort()
    .map((file) => `./${file}`)
}

/** Runs `bun test` with its output passed on, and reads the counts from the end of it. */
async function runBunTest(args: readonly string[], stageEnv: Stage['env'] = {}): Promise<TestCounts> {
  const color = process.stderr.isTTY ? { FORCE_COLOR: '1' } : {}
  const child = Bun.spawn([process.execPath, 'test', `--timeout=${testTimeoutMs}`, ...args], {
    cwd: root,
    env: { ...process.env, ...color, ...stageEnv },
    stdio: ['inherit', 'inherit', 'pipe'],
  })
  const decoder = new TextDecoder()
  let tail = ''
  for await (const chunk of child.stderr) {
    process.stderr.write(chunk)
    const text = decoder.decode(chunk, { stream: true })
    failureList.push(text)
    tail = (tail + text).slice(-tailChars)
  }
  const status = await child.exited
  const counts = parseTestSummary(tail)
  // A run that crashed, failed to load a file or lost its voice has no failed test to show for it.
  if (counts === undefined)
    failureList.failures.push(`${args[0] ?? 'the tests'} …: the run ended without a summary`)
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
  let total = noTests
  for (const stage of stages) {
    const files = listFiles(stage.patterns)
    if (files.length === 0 || (stage.needsEngine === true && engine === undefined)) continue
    console.error(`\n${stage.name}: ${files.length} files`)
    total = addCounts(total, await runBunTest(files, { ...shared, ...stage.env }))
  }
  return total
}

ensureSystemPackages((line) => console.error(line))
const extra = process.argv.slice(2)
const counts = extra.length > 0 ? await runBunTest(extra) : await runStages()
for (const failure of failureList.failures) console.log(`failed: ${failure}`)
console.log(formatCounts(counts))
process.exitCode = isGreen(counts) ? 0 : 1
