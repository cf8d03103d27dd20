// Runs the tests in groups, several groups at a time. Arguments go to `bun test` and replace the groups:
// `npm test -- packages/protocol -t resumes`.

import { mkdirSync } from 'node:fs'
import path from 'node:path'

import {
  type Engine,
  findEngineProblem,
  ENGINE_PROBLEM_VARIABLE,
  startEngine,
} from '../test/e2e/support/container/engine.ts'
import { buildWorkbench } from '../test/e2e/support/built-workbench.ts'
import { ensureSystemPackages } from './system-packages.ts'
import {
  addCounts,
  type Failure,
  FailureList,
  formatCounts,
  formatFailure,
  formatFailures,
  isGreen,
  noTests,
  parseTestSummary,
  type TestCounts,
} from './test-summary.ts'
import { waitForIdle } from './wait-for-idle.ts'

/** End-to-end tests start real processes, which a busy machine delays by seconds; longer than several waits of a test. */
const TEST_TIMEOUT_MS = 180_000
/** Holds the summary that ends the output of `bun test`. */
const TAIL_CHARS = 64 * 1024
/** Failures listed at the end of a run. */
const MAX_LISTED_FAILURES = 40
/** More failures than this are not due to a busy machine. */
const MAX_REPEATED_FAILURES = 4
/** Groups that run at the same time. Most tests wait most of the time, so this exceeds two processors by two. */
const PARALLEL_GROUPS = 4
/** Groups beyond those, each started while processors are idle. */
const EXTRA_GROUPS = 3

/** Test files that run in one process, one after the other, and can share a host, an engine and a browser. */
interface Group {
  readonly name: string
  /** Rough duration of all parts. The longest part starts first. */
  readonly seconds: number
  /** Processes that share its files, so that no group is left running alone at the end. */
  readonly parts?: number
  /** Globs. A file belongs to the first group that matches it, unless the group repeats files of others. */
  readonly patterns: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Runs only where a container engine can run. */
  readonly needsEngine?: true
  /** Runs only as root. */
  readonly needsRoot?: true
  /** Runs its files again in another environment; does not claim them. */
  readonly isRepeat?: true
  /** Its tests depend on nothing outside the process, so a failure is never repeated. */
  readonly isPure?: true
}

const e2e = (...names: string[]): string[] => names.map((name) => `test/e2e/${name}.test.ts`)

/** Tests of the wire that do not depend on what is between client and sandboxd. */
const WIRE_TESTS = e2e('streams', 'terminal-input', 'sharing', 'disconnects')

/** In the order in which they claim files. */
const GROUPS: readonly Group[] = [
  {
    name: 'workbench panels',
    seconds: 200,
    parts: 2,
    patterns: e2e(
      ...['accessibility', 'conflict', 'editing', 'editor', 'lists', 'panels', 'panes', 'tabs'].map(
        (name) => `workbench-${name}`,
      ),
    ),
  },
  {
    name: 'workbench terminals',
    seconds: 260,
    parts: 3,
    patterns: e2e(
      'workbench-*',
      'terminal-component',
      'guest-workbench',
      'join-page',
      'browser',
      'embedding',
    ),
  },
  { name: 'threats', seconds: 200, parts: 2, patterns: e2e('threats-*') },
  {
    name: 'strangers',
    seconds: 120,
    patterns: [...e2e('strangers/*'), 'apps/control/test/strangers/*.test.ts'],
  },
  { name: 'control', seconds: 360, parts: 3, patterns: ['apps/control/**/*.test.ts'] },
  { name: 'agents', seconds: 160, parts: 2, patterns: e2e('agent-*') },
  { name: 'command line', seconds: 80, patterns: e2e('cli-*') },
  { name: 'sandboxd', seconds: 180, parts: 2, patterns: ['apps/sandboxd/**/*.test.ts'] },
  { name: 'host', seconds: 200, parts: 2, patterns: e2e('up', 'up-*') },
  {
    name: 'isolation',
    seconds: 120,
    patterns: e2e('isolation*', 'egress', 'gateway', 'doctor', 'sandbox-inside'),
  },
  { name: 'containers', seconds: 370, parts: 2, patterns: e2e('container-*') },
  { name: 'workspace', seconds: 70, patterns: [...e2e('workspace-*'), 'test/co*/**/*.test.ts'] },
  {
    name: 'wire',
    seconds: 150,
    parts: 2,
    patterns: [...WIRE_TESTS, ...e2e('flow', 'lifetime', 'create', 'stop', 'snapshot')],
  },
  { name: 'end to end', seconds: 400, parts: 4, patterns: e2e('**/*') },
  {
    name: 'units',
    seconds: 65,
    isPure: true,
    patterns: ['packages', 'apps', 'scripts', 'deploy'].map((folder) => `${folder}/**/*.test.ts`),
  },
  {
    name: 'wire through control',
    seconds: 60,
    patterns: WIRE_TESTS,
    env: { SANDWIRE_E2E: 'control' },
    isRepeat: true,
  },
  {
    name: 'wire through sprites',
    seconds: 60,
    patterns: e2e('disconnects', 'terminal-input'),
    env: { SANDWIRE_E2E: 'sprites' },
    isRepeat: true,
    needsRoot: true,
  },
  {
    name: 'wire through containers',
    seconds: 35,
    patterns: e2e('streams', 'disconnects'),
    env: { SANDWIRE_E2E: 'container' },
    isRepeat: true,
    needsEngine: true,
  },
]

interface Run {
  readonly counts: TestCounts
  readonly failures: readonly Failure[]
}

const root = path.dirname(import.meta.dir)
const logFolder = path.join(root, '.cache', 'test')

function assignFiles(groups: readonly Group[]): Map<Group, readonly string[]> {
  const claimed = new Set<string>()
  const assigned = new Map<Group, readonly string[]>()
  for (const group of groups) {
    const files = new Set<string>()
    for (const pattern of group.patterns) {
      for (const file of new Bun.Glob(pattern).scanSync({ cwd: root })) {
        if (file.includes('node_modules/')) continue
        if (group.isRepeat !== true && claimed.has(file)) continue
        files.add(file)
      }
    }
    if (group.isRepeat !== true) for (const file of files) claimed.add(file)
    // With a leading ./ bun treats the argument as a file, not as a filter on names.
    assigned.set(
      group,
      [...files].toSorted().map((file) => `./${file}`),
    )
  }
  return assigned
}

/** A group's files for one process. */
interface Part {
  readonly group: Group
  readonly name: string
  readonly seconds: number
  readonly files: readonly string[]
}

/** Neighbors in the alphabet often take equally long, so the files are dealt out in turn. */
function partsOf(group: Group, files: readonly string[]): readonly Part[] {
  const { name, seconds, parts = 1 } = group
  return Array.from({ length: parts }, (_, part) => ({
    group,
    name: parts === 1 ? name : `${name} ${part + 1}`,
    seconds: seconds / parts,
    files: files.filter((__, index) => index % parts === part),
  }))
}

/** Runs `bun test`, streams its output and parses the counts at its end. */
async function runBunTest(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  onOutput: (chunk: Uint8Array) => void,
): Promise<Run> {
  const color = process.stderr.isTTY ? { FORCE_COLOR: '1' } : {}
  const child = Bun.spawn([process.execPath, 'test', `--timeout=${TEST_TIMEOUT_MS}`, ...args], {
    cwd: root,
    env: { ...process.env, ...color, ...env },
    stdio: ['inherit', 'inherit', 'pipe'],
  })
  const decoder = new TextDecoder()
  const list = new FailureList()
  let tail = ''
  for await (const chunk of child.stderr) {
    onOutput(chunk)
    const text = decoder.decode(chunk, { stream: true })
    list.push(text)
    tail = (tail + text).slice(-TAIL_CHARS)
  }
  const status = await child.exited
  const counts = parseTestSummary(tail)
  if (counts === undefined) {
    const failure = { file: args[0] ?? '', title: '…', reason: 'the run ended without a summary' }
    return { counts: { ...noTests, failed: 1 }, failures: [...list.failures, failure] }
  }
  // A run that could not load a file fails without a failed test.
  const isSilent = status !== 0 && counts.failed === 0
  return { counts: isSilent ? { ...counts, failed: 1 } : counts, failures: list.failures }
}

/** Starts one container engine for all groups. Without one, tests with containers are skipped and the reason is printed. */
async function openEngine(): Promise<Engine | undefined> {
  let reason = findEngineProblem()
  try {
    if (reason === undefined) return await startEngine()
  } catch (error) {
    reason = error instanceof Error ? error.message : String(error)
  }
  console.error(`Skipping tests with containers: ${reason}`)
  process.env[ENGINE_PROBLEM_VARIABLE] = reason.split('\n')[0]
  return undefined
}

const environmentOf = (group: Group, engine: Engine | undefined): Record<string, string> => ({
  ...(engine === undefined ? {} : { DOCKER_HOST: engine.host }),
  ...group.env,
})

/** Prints one line for a part that passed, and the whole output of one that failed. The log file has it in both cases. */
async function runPart({ group, name, files }: Part, engine: Engine | undefined): Promise<Run> {
  const startedMs = performance.now()
  const output: Uint8Array[] = []
  const run = await runBunTest(files, environmentOf(group, engine), (chunk) => void output.push(chunk))
  const bytes = Buffer.concat(output)
  await Bun.write(path.join(logFolder, `${name.replaceAll(' ', '-')}.log`), bytes)
  const isOk = isGreen(run.counts)
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0)
  if (!isOk) process.stderr.write(bytes)
  console.error(`${isOk ? 'ok  ' : 'FAIL'}  ${name}: ${formatCounts(run.counts)}, ${seconds} s`)
  return run
}

/**
 * Runs the files of a few failed tests once more, now that nothing else runs. Tests with real processes can time out
 * on a busy machine. A test that passes is reported as unstable; one that fails again fails the run.
 */
async function repeatFailures(runs: Map<Part, Run>, engine: Engine | undefined): Promise<void> {
  const total = [...runs.values()].reduce((sum, { counts }) => sum + counts.failed, 0)
  if (total > MAX_REPEATED_FAILURES) return
  for (const [part, run] of runs) {
    const { group } = part
    // A run that crashed has more failures than failed tests with a file.
    const isNamed = run.failures.length === run.counts.failed && run.failures.every(({ file }) => file !== '')
    if (isGreen(run.counts) || group.isPure === true || !isNamed) continue
    const files = [...new Set(run.failures.map(({ file }) => `./${file.replace(/^\.\//, '')}`))]
    console.error(`Repeating ${files.join(', ')}`)
    const second = await runBunTest(files, environmentOf(group, engine), (chunk) =>
      process.stderr.write(chunk),
    )
    if (!isGreen(second.counts)) continue
    for (const failure of run.failures)
      console.log(`unstable: passed at the second attempt: ${formatFailure(failure)}`)
    const { passed, failed, skipped } = run.counts
    runs.set(part, { counts: { passed: passed + failed, failed: 0, skipped }, failures: [] })
  }
}

async function runGroups(): Promise<Run> {
  await using engine = await openEngine()
  // Otherwise each of the first groups would build it.
  await buildWorkbench()
  mkdirSync(logFolder, { recursive: true })
  const waiting = [...assignFiles(GROUPS)]
    .filter(([group, files]) => files.length > 0 && (group.needsEngine !== true || engine !== undefined))
    .filter(([group]) => group.needsRoot !== true || process.getuid?.() === 0)
    .flatMap(([group, files]) => partsOf(group, files))
    .toSorted((a, b) => b.seconds - a.seconds)
  const runs = new Map<Part, Run>()
  const runNext = async (): Promise<void> => {
    const next = waiting.shift()
    if (next !== undefined) runs.set(next, await runPart(next, engine))
  }
  const hasGroups = (): boolean => waiting.length > 0
  const work = async (): Promise<void> => {
    while (hasGroups()) await runNext()
  }
  const workWhenIdle = async (): Promise<void> => {
    const running = new Set<Promise<void>>()
    while (await waitForIdle(hasGroups)) {
      const run = runNext().finally(() => running.delete(run))
      running.add(run)
      if (running.size >= EXTRA_GROUPS) await Promise.race(running)
    }
    await Promise.all(running)
  }
  await Promise.all([...Array.from({ length: PARALLEL_GROUPS }, work), workWhenIdle()])
  await repeatFailures(runs, engine)
  const all = [...runs.values()]
  return {
    counts: all.map(({ counts }) => counts).reduce(addCounts, noTests),
    failures: all.flatMap(({ failures }) => failures),
  }
}

ensureSystemPackages((line) => console.error(line))
const extra = process.argv.slice(2)
const { counts, failures } =
  extra.length > 0 ? await runBunTest(extra, {}, (chunk) => process.stderr.write(chunk)) : await runGroups()
for (const line of formatFailures(failures, MAX_LISTED_FAILURES)) console.log(line)
console.log(formatCounts(counts))
process.exitCode = isGreen(counts) ? 0 : 1
