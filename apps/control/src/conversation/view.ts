import type { Published } from '../run/published.ts'
import type { Spent } from '../run/record.ts'
import type { Activity } from './frames.ts'
import type { ConversationRecord } from './record.ts'
import type { ConversationState } from './state.ts'

/** A conversation as the API shows it. */
export interface ConversationView {
  readonly id: string
  /** How the owner's client names it. */
  readonly sessionId: string | null
  readonly sandbox: string
  /** What its agent is doing. `idle`: it takes a message, whether or not its program runs. */
  readonly state: Activity
  readonly title: string
  readonly repo: string | null
  readonly ref: string | null
  readonly agent: string
  /** The agent's own name for the conversation, once it has begun: `claude --resume ID` opens it in a terminal. */
  readonly agentSessionId: string | null
  readonly model: string | null
  readonly permission: 'auto' | 'ask'
  readonly budgetUsd: number
  readonly createdMs: number
  readonly usedMs: number
  /** Number of the last entry. */
  readonly lastSeq: number
  /** Messages that wait for the agent. */
  readonly queued: number
  /** Requests that wait for an answer. */
  readonly requests: readonly string[]
  readonly usage: Spent
  readonly published: Published | null
}

const NOTHING: Spent = {
  costUsd: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  requests: 0,
}

export function viewOf(
  record: ConversationRecord,
  { snapshot, activity }: ConversationState,
): ConversationView {
  const { id, sessionId, sandbox, title, request, createdMs, usedMs, spent } = record
  const { source, agent, model, permission, budgetUsd } = request
  return {
    id,
    sessionId,
    sandbox,
    state: activity,
    title,
    repo: source.kind === 'repo' ? source.repo : null,
    ref: source.kind === 'repo' ? (source.ref ?? null) : null,
    agent,
    agentSessionId: snapshot.resume,
    model: model ?? null,
    permission,
    budgetUsd,
    createdMs,
    usedMs,
    lastSeq: snapshot.lastSeq,
    queued: snapshot.queue.length,
    requests: snapshot.requests.filter(({ answer }) => answer === null).map(({ requestId }) => requestId),
    usage: spent ?? NOTHING,
    published: record.published ?? null,
  }
}
