import { SandwireError } from '@sandwire/protocol'
import { shellQuote } from '@sandwire/shell-quote'
import { decodeRun, describeMissing, errorOfRun, readDiff, waitForResult } from '../agent/run-api.ts'
import { watchRun } from '../agent/watch-run.ts'
import { type DiffOptions, useDiff } from '../agent/use-diff.ts'
import { WorkTree } from '../agent/work-tree.ts'
import { CopyReport } from '../copy/progress.ts'
import { RemoteWorkspace } from '../copy/remote-workspace.ts'
import { uploadEntries } from '../copy/upload.ts'
import { UsageError } from '../errors/errors.ts'
import { exitCodeOfError } from '../errors/exit-code.ts'
import { printable } from '../text/printable.ts'
import type { Command, CommandContext, CommandOptions } from './command.ts'
import { decodeSandbox } from './responses.ts'

/** What agents and their tools need; a server with lower ceilings gives its defaults. */
const AGENT_LIMITS = {
  memoryBytes: 2 * 1024 ** 3,
  milliCpus: 2_000,
  pids: 512,
  diskBytes: 2 * 1024 ** 3,
}

interface AgentOptions extends DiffOptions {
  readonly body: Readonly<Record<string, unknown>>
  readonly repo: string | undefined
  readonly keep: boolean
}

function numberOption(options: CommandOptions, name: string): number | undefined {
  const value = options.value(name)
  if (value === undefined) return undefined
  const number = Number(value)
  if (!(number > 0)) throw new UsageError(`--${name} needs a number above 0`)
  return number
}

function parseOptions(options: CommandOptions): AgentOptions {
  const [task, ...more] = options.positionals
  if (task === undefined || task.trim() === '') throw new UsageError('Say what to do: sbx-stdio agent "TASK"')
  if (more.length > 0) throw new UsageError('The task is one argument; put it in quotes')
  if (options.has('apply') && options.has('no-apply'))
    throw new UsageError('Use either --apply or --no-apply, not both')
  const repo = options.value('repo')
  const ref = options.value('ref')
  if (ref !== undefined && repo === undefined) throw new UsageError('--ref needs --repo')
  if (repo !== undefined && options.has('apply'))
    throw new UsageError('--apply needs a work tree, not --repo')
  return {
    repo,
    keep: options.has('keep'),
    patch: options.value('patch'),
    apply: options.has('apply') ? 'yes' : options.has('no-apply') ? 'no' : 'ask',
    body: { task, ...present({ ref }), ...parseBody(options) },
  }
}

/** The entries that have a value. */
function present(entries: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined))
}

/** The fields of the request that options set. */
function parseBody(options: CommandOptions): Readonly<Record<string, unknown>> {
  const limits = present({
    budgetUsd: numberOption(options, 'budget'),
    turns: numberOption(options, 'turns'),
    wallClockSeconds: numberOption(options, 'timeout'),
  })
  const allow = options.values('allow')
  const policy = options.value('network') ?? (allow.length > 0 ? 'allowlist' : undefined)
  return present({
    context: options.value('context'),
    agent: options.value('agent'),
    model: options.value('model'),
    permission: options.has('ask') ? 'ask' : undefined,
    interactive: options.has('interactive') ? true : undefined,
    limits: Object.keys(limits).length === 0 ? undefined : limits,
    network: policy === undefined ? undefined : { policy, allow },
  })
}

/** Creates a sandbox for the work tree. */
async function createSandbox({ api }: CommandContext): Promise<string> {
  try {
    return decodeSandbox(await api.request('POST', '/api/sandboxes', { limits: AGENT_LIMITS })).id
  } catch (caught) {
    const error = SandwireError.from(caught)
    if (error.details.field?.startsWith('limits') !== true) throw error
    return decodeSandbox(await api.request('POST', '/api/sandboxes', {})).id
  }
}

/** Copies the files of the work tree into a new sandbox; returns its id. */
async function sendTree(context: CommandContext, tree: WorkTree): Promise<string> {
  const { api, io } = context
  const sandbox = await createSandbox(context)
  using interruption = io.openInterruption()
  using report = new CopyReport(io.progress, () => performance.now())
  const { signal } = interruption
  try {
    const transfer = { remote: new RemoteWorkspace(api, sandbox, signal), report, signal }
    await uploadEntries(transfer, { sandbox, folder: '.' }, tree.entries())
    const [problem] = report.problems.lines
    if (problem !== undefined) throw new SandwireError('file_refused', `Cannot send the files: ${problem}`)
    return sandbox
  } catch (error) {
    await api.request('DELETE', `/api/sandboxes/${sandbox}`).catch(() => undefined)
    throw error
  }
}

async function runAgent(context: CommandContext, options: AgentOptions): Promise<number> {
  const { api, io, program, urlOption } = context
  const tree = options.repo === undefined ? WorkTree.find('.') : undefined
  const hash = tree?.hash()
  const source = tree === undefined ? { repo: options.repo } : { sandbox: await sendTree(context, tree) }
  const body = { ...options.body, ...source, keep: options.keep }
  const created = await api.request('POST', '/api/runs', body).catch(async (error: unknown) => {
    if (source.sandbox !== undefined)
      await api.request('DELETE', `/api/sandboxes/${source.sandbox}`).catch(() => undefined)
    throw error
  })
  const { id } = decodeRun(created)
  io.info(`run ${id}`)
  const how = await watchRun(context, id)
  if (how === 'detached') {
    io.info(`the run goes on; come back with: ${program} run events ${shellQuote(id)}${urlOption}`)
    return 0
  }
  const run = await waitForResult({ api, wait: io.wait }, id)
  for (const line of describeMissing(run)) io.info(printable(line))
  if (run.result !== null && run.result.diffBytes !== null) {
    using interruption = io.openInterruption()
    const patch = await readDiff(api, id, interruption.signal)
    const sent = tree === undefined || hash === undefined ? undefined : { run: id, tree, hash }
    await useDiff(context, patch, options, sent)
  }
  if (run.result?.tamperProof === false && run.result.diffBytes !== null)
    io.info('the agent could have changed its own log: this server does not separate users')
  if (options.keep)
    io.info(`the sandbox stays: ${program} ${shellQuote(context.server)} --sandbox ${run.sandbox}`)
  const error = errorOfRun(run)
  if (error === undefined) return 0
  io.info(printable(error.message))
  io.hint(`see what happened: ${program} run events ${shellQuote(id)}${urlOption}`)
  return exitCodeOfError(error)
}

/** Has a coding agent work on this work tree, or on a repository. */
export const agent: Command = {
  help: `Usage: sbx-stdio agent "TASK" [options]

Has a coding agent work on a copy of this git work tree in a new sandbox, and offers to apply its changes. Sent are
tracked files, and others that are not ignored. While it works, type to tell it something.

  --repo URL           work on a repository instead; the server clones it
  --ref REF            its branch, tag or commit (default: the default branch)
  --context TEXT       more about the task
  --agent NAME         agent to use (default: claude)
  --model NAME         model to use (default: the server's)
  --ask                ask before tools that change something
  --interactive        take further messages after each turn, until you end the run
  --budget USD         end the run when it has cost this much
  --turns NUMBER       end the run after so many requests to the model
  --timeout SECONDS    end the run after this time
  --network POLICY     none (default), allowlist or open, for programs that the agent runs
  --allow HOST         with allowlist: see sbx-stdio create --help (repeatable)
  --keep               keep the sandbox afterwards
  --apply              apply the changes without asking
  --no-apply           do not apply the changes
  --patch FILE         write the changes to a file; - for stdout, which is the default if stdout is not a terminal

Ctrl-C interrupts the agent, twice aborts the run, Ctrl+] leaves it running. An aborted run still returns its changes.
With --json, events are printed as JSON, one per line.
Exit status: 0 completed, 1 failed, 3 budget used up, 4 crashed, 5 files lost, 124 timed out, 130 aborted
`,
  options: {
    repo: 'value',
    ref: 'value',
    context: 'value',
    agent: 'value',
    model: 'value',
    ask: 'flag',
    interactive: 'flag',
    budget: 'value',
    turns: 'value',
    timeout: 'value',
    network: 'value',
    allow: 'values',
    keep: 'flag',
    apply: 'flag',
    'no-apply': 'flag',
    patch: 'value',
  },
  fields: {
    repo: { option: '--repo' },
    ref: { option: '--ref' },
    agent: { option: '--agent' },
    model: { option: '--model' },
    task: { option: 'the task' },
    'limits.budgetUsd': { option: '--budget' },
    'limits.turns': { option: '--turns' },
    'limits.wallClockSeconds': { option: '--timeout' },
    network: { option: '--network' },
  },
  parse: (options) => {
    const parsed = parseOptions(options)
    return { run: (context) => runAgent(context, parsed) }
  },
}
