import type { InputRequest, RunResult } from '@sandwire/agent'
import type { Publishable } from './publish.ts'
import type { Published } from './published.ts'
import type { RunLimits, RunRecord, Spent } from './record.ts'
import type { RunOutcome, RunState } from './state.ts'

/** A value of the agent that control passes on. Not `unknown`, which cannot be sent between objects. */
export type OpaqueJson = string | number | boolean | null | object

/** A pending request of the agent. */
export interface PendingRequest extends Omit<InputRequest, 'tool'> {
  readonly tool?: { readonly name: string; readonly title: string; readonly input: OpaqueJson }
}

/** Result of an ended run, without the patch. */
export interface ResultView {
  readonly status: RunOutcome
  readonly message: string | null
  readonly summary: string
  readonly structured: OpaqueJson
  readonly filesChanged: readonly string[]
  readonly treeHash: string | null
  readonly base: RunResult['base']
  /** Bytes of the patch at `/api/runs/:run/diff`; null: there is none. */
  readonly diffBytes: number | null
  readonly diffProblem: string | null
  readonly ignored: readonly string[]
  readonly submodules: readonly string[]
  /** Changed files that contain the run's token; the diff leaves them as they were. */
  readonly withheld: readonly string[]
  readonly unreadable: readonly string[]
  readonly agentSessionId: string | null
  readonly tamperProof: boolean
}

/** A run as the API shows it. */
export interface RunView {
  readonly id: string
  readonly sandbox: string
  readonly state: RunState['kind']
  /** Set once it has ended. */
  readonly outcome: RunOutcome | null
  /** Why it ends or ended, when it did not complete. */
  readonly message: string | null
  readonly task: string
  readonly repo: string | null
  readonly ref: string | null
  readonly agent: string
  readonly model: string | null
  readonly permission: 'auto' | 'ask'
  readonly keep: boolean
  readonly limits: RunLimits
  readonly createdMs: number
  readonly startedMs: number | null
  readonly endedMs: number | null
  /** Requests that wait for an answer. */
  readonly approvals: readonly PendingRequest[]
  readonly usage: Spent & { readonly turns: number }
  readonly result: ResultView | null
  /** For its owner, once it has ended; null in lists, and without a repository. */
  readonly publishable: Publishable | null
  readonly published: Published | null
}

/** Characters of a task in lists. */
const MAX_LISTED_TASK_CHARS = 200

const NOTHING: Spent = {
  costUsd: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  requests: 0,
}

/** Use of the model as the gateway counted it; as the agent did where the gateway saw nothing. */
function usageOf({ agent, result, spent }: RunRecord): RunView['usage'] {
  const { turns = 0, costUsd, ...tokens } = result?.usage ?? agent?.usage ?? {}
  if (spent !== null && spent.requests > 0) return { ...spent, turns }
  return { ...NOTHING, ...tokens, costUsd: costUsd ?? 0, turns }
}

/** JSON of sandboxd, as it was parsed. */
function opaque(value: unknown): OpaqueJson {
  return value ?? null
}

function toPending({ tool, ...request }: InputRequest): PendingRequest {
  return tool === undefined ? request : { ...request, tool: { ...tool, input: opaque(tool.input) } }
}

/** The result of a run whose sandbox reported none. */
const NO_RESULT = {
  summary: '',
  structured: null,
  base: null,
  diff: null,
  diffProblem: null,
  isTamperProof: false,
  message: null,
} as const

const NO_DIFF = {
  files: [],
  treeHash: null,
  ignored: [],
  submodules: [],
  withheld: [],
  unreadable: [],
} as const

function resultOf({ result, state, diffBytes, agent, request }: RunRecord): ResultView | null {
  if (state.kind !== 'ended') return null
  const { summary, structured, base, diff, diffProblem, isTamperProof, message } = result ?? NO_RESULT
  const { files, treeHash, ignored, submodules, withheld, unreadable } = diff ?? NO_DIFF
  return {
    status: state.outcome,
    message: state.message ?? message,
    summary,
    structured: opaque(structured),
    filesChanged: files.map(({ path }) => path),
    treeHash,
    base,
    diffBytes,
    diffProblem,
    ignored,
    submodules,
    withheld,
    unreadable,
    // A program that failed before it said so has the conversation that it was to continue.
    agentSessionId: result?.agentSessionId ?? agent?.agentSessionId ?? request.stream?.resume ?? null,
    tamperProof: isTamperProof,
  }
}

export function viewOf(record: RunRecord): RunView {
  const { id, sandbox, request, state, agent, createdMs } = record
  const { source, task, permission, keep, limits } = request
  return {
    id,
    sandbox,
    state: state.kind,
    outcome: state.kind === 'ended' ? state.outcome : null,
    message: 'message' in state ? (state.message ?? null) : null,
    task,
    repo: source.kind === 'repo' ? source.repo : null,
    ref: source.kind === 'repo' ? (source.ref ?? null) : null,
    agent: request.agent,
    model: agent?.model ?? request.model ?? null,
    permission,
    keep,
    limits,
    createdMs,
    startedMs: agent?.startedMs ?? null,
    endedMs: state.kind === 'ended' ? state.endedMs : null,
    approvals: (agent?.approvals ?? []).map(toPending),
    usage: usageOf(record),
    result: resultOf(record),
    publishable: null,
    published: record.published ?? null,
  }
}

/** A run in lists: the beginning of its task, and no result. */
export function listedView(view: RunView): RunView {
  return { ...view, task: view.task.slice(0, MAX_LISTED_TASK_CHARS), approvals: [], result: null }
}
