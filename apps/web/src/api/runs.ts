import type { InputRequest, NumberedEvent, Partial as PartialMessage } from '@sandwire/agent'
import type { RestoreTarget } from './conversations.ts'
import type { Publication, Published } from './publish.ts'
import { request, requestJson } from './request.ts'

export type RunState = 'queued' | 'preparing' | 'running' | 'awaiting' | 'stopping' | 'collecting' | 'ended'

export interface RunResult {
  readonly status: string
  readonly message: string | null
  readonly summary: string
  readonly filesChanged: readonly string[]
  /** Bytes of the patch; null: there is none. */
  readonly diffBytes: number | null
  readonly diffProblem: string | null
}

/** A run of a coding agent. */
export interface Run {
  readonly id: string
  readonly sandbox: string
  readonly state: RunState
  /** How it ended. */
  readonly outcome: string | null
  readonly message: string | null
  readonly task: string
  readonly repo: string | null
  readonly agent: string
  readonly model: string | null
  readonly permission: 'auto' | 'ask'
  readonly limits: { readonly budgetUsd: number }
  readonly createdMs: number
  readonly endedMs: number | null
  /** Empty in lists. */
  readonly approvals: readonly InputRequest[]
  readonly usage: { readonly costUsd: number; readonly turns: number }
  /** Null until it has ended, and in lists. */
  readonly result: RunResult | null
  /** For its owner, once it has ended; null in lists, and without a repository. */
  readonly publishable: {
    /** Why its changes cannot be published; null: they can. */
    readonly problem: string | null
    /** A pull request can be opened too. */
    readonly pullRequest: boolean
  } | null
  readonly published: Published | null
}

export interface NewRun {
  readonly task: string
  readonly agent?: string
  readonly repo?: string
  readonly ref?: string
  readonly sandbox?: string
  readonly model?: string
  readonly permission: 'auto' | 'ask'
  readonly interactive: boolean
  readonly limits?: { readonly budgetUsd: number }
  readonly keep: boolean
}

export interface RequestAnswer {
  readonly decision: 'allow' | 'deny'
  readonly message?: string
  readonly acceptsEdits?: boolean
  /** In conversations: also allow every further call of the tool. */
  readonly always?: boolean
  readonly answers?: Readonly<Record<string, string>>
}

function urlOf(run: string, tail = ''): string {
  return `/api/runs/${encodeURIComponent(run)}${tail}`
}

/** A coding agent that runs can use. */
export interface Agent {
  readonly name: string
  readonly title: string
}

export async function listAgents(): Promise<readonly Agent[]> {
  return (await requestJson<{ agents: readonly Agent[] }>('/api/agents')).agents
}

export async function listRuns(): Promise<readonly Run[]> {
  return (await requestJson<{ runs: readonly Run[] }>('/api/runs')).runs
}

export function readRun(run: string): Promise<Run> {
  return requestJson<Run>(urlOf(run))
}

/** `key` makes repeated requests start one run. */
export function createRun(order: NewRun, key: string): Promise<Run> {
  return requestJson<Run>('/api/runs', { method: 'POST', json: order, headers: { 'idempotency-key': key } })
}

/** Repeating it with the same id sends nothing twice. */
export async function sendMessage(run: string, id: string, text: string): Promise<void> {
  await request(urlOf(run, '/messages'), { method: 'POST', json: { id, text } })
}

export async function answerRequest(run: string, requestId: string, answer: RequestAnswer): Promise<void> {
  await request(urlOf(run, `/approvals/${encodeURIComponent(requestId)}`), { method: 'POST', json: answer })
}

/** `interrupt` ends the turn, `abort` the run. */
export async function stopRun(run: string, how: 'interrupt' | 'abort'): Promise<void> {
  await request(urlOf(run, `/${how}`), { method: 'POST' })
}

/** Files to which the workspace can be restored, once the run has ended. */
export interface RunRestorePoints {
  /** `message` may be `task`. Without a version, the files were not saved. */
  readonly turns: readonly { readonly message: string; readonly version: number | null }[]
  readonly canUndo: boolean
}

export function readRestorePoints(run: string): Promise<RunRestorePoints> {
  return requestJson<RunRestorePoints>(urlOf(run, '/restore-points'))
}

export function restoreRun(run: string, target: RestoreTarget): Promise<RunRestorePoints> {
  return requestJson<RunRestorePoints>(urlOf(run, '/restore'), { method: 'POST', json: target })
}

export async function deleteRun(run: string): Promise<void> {
  await request(urlOf(run), { method: 'DELETE' })
}

export async function readRunDiff(run: string): Promise<string> {
  return await (await request(urlOf(run, '/diff'))).text()
}

/** Repeating it finds its branch and pull request. */
export function publishRun(run: string, publication: Publication): Promise<Published> {
  return requestJson<Published>(urlOf(run, '/publish'), { method: 'POST', json: publication })
}

const EVENT_TYPES = [
  'stdout',
  'stderr',
  'complete',
  'todo',
  'plan',
  'file_change',
  'awaiting_input',
  'result',
  'text',
  'tool_call',
  'tool_result',
  'usage',
  'status',
]

export interface RunListener {
  readonly onEvent: (entry: NumberedEvent) => void
  readonly onPartial: (partial: PartialMessage['partial']) => void
  /** The browser does not reconnect by itself. */
  readonly onEnd: () => void
}

/** Listens to the events after a sequence number, until the returned function is called. The browser reconnects after the last event. */
export function watchRun(run: string, after: number, listener: RunListener): () => void {
  const source = new EventSource(urlOf(run, `/events?after=${after}`))
  const onEvent = (event: MessageEvent<string>): void =>
    listener.onEvent(JSON.parse(event.data) as NumberedEvent)
  for (const type of EVENT_TYPES) source.addEventListener(type, onEvent)
  source.addEventListener('partial', (event: MessageEvent<string>) =>
    listener.onPartial((JSON.parse(event.data) as PartialMessage).partial),
  )
  source.addEventListener('error', () => {
    if (source.readyState === EventSource.CLOSED) listener.onEnd()
  })
  return () => source.close()
}
