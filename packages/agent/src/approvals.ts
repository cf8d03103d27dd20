import { SandwireError } from '@sandwire/protocol'
import type { ApprovalAnswer, ApprovalView } from './api.ts'
import type { InputRequest } from './event.ts'

/** Requests of one run that are kept, pending or not. An agent that asks more often is denied. */
const MAX_REQUESTS = 1_000

type Outcome =
  | { readonly state: 'pending' }
  | { readonly state: 'answered'; readonly answer: ApprovalAnswer }
  | { readonly state: 'expired' }
  | { readonly state: 'withdrawn' }

interface Entry<T> {
  readonly request: InputRequest
  /** Monotonic. */
  readonly deadlineMs: number
  /** What the driver needs to answer the agent. */
  readonly context: T
  outcome: Outcome
}

/** Questions of an agent. Each leaves `pending` once: by the first answer, at its deadline, or because it was withdrawn. */
export class Approvals<T> {
  readonly #entries = new Map<string, Entry<T>>()

  /** False when the request cannot be recorded: the id was used before, or there are too many. */
  add(request: InputRequest, deadlineMs: number, context: T): boolean {
    if (this.#entries.size >= MAX_REQUESTS || this.#entries.has(request.requestId)) return false
    this.#entries.set(request.requestId, { request, deadlineMs, context, outcome: { state: 'pending' } })
    return true
  }

  get pending(): readonly InputRequest[] {
    return this.#pending().map(({ request }) => request)
  }

  /** When the next request expires. */
  get deadlineMs(): number | undefined {
    const deadlines = this.#pending().map((entry) => entry.deadlineMs)
    return deadlines.length === 0 ? undefined : Math.min(...deadlines)
  }

  /** The context of a request that this answer decides; undefined when the same answer was given before. Throws if it is decided otherwise. */
  answer(answer: ApprovalAnswer): { readonly request: InputRequest; readonly context: T } | undefined {
    const entry = this.#entries.get(answer.requestId)
    if (entry === undefined)
      throw new SandwireError('not_found', `Cannot answer "${answer.requestId}": no such request`)
    switch (entry.outcome.state) {
      case 'pending':
        entry.outcome = { state: 'answered', answer }
        return entry
      case 'answered':
        if (isSame(entry.outcome.answer, answer)) return undefined
        throw new SandwireError('conflict', 'Cannot answer the request: it was answered already')
      case 'expired':
        throw new SandwireError(
          'conflict',
          'Cannot answer the request: its deadline has passed, so it was denied',
        )
      case 'withdrawn':
        throw new SandwireError('conflict', 'Cannot answer the request: the agent has withdrawn it')
    }
  }

  /** Marks requests whose deadline has passed; returns their contexts. */
  expire(nowMs: number): readonly { readonly request: InputRequest; readonly context: T }[] {
    const due = this.#pending().filter(({ deadlineMs }) => deadlineMs <= nowMs)
    for (const entry of due) entry.outcome = { state: 'expired' }
    return due
  }

  /** Marks a pending request, or all, as withdrawn; returns which. */
  withdraw(requestId?: string): readonly InputRequest[] {
    const entries = this.#pending().filter(
      ({ request }) => requestId === undefined || request.requestId === requestId,
    )
    for (const entry of entries) entry.outcome = { state: 'withdrawn' }
    return entries.map(({ request }) => request)
  }

  view(requestId: string): ApprovalView | undefined {
    const outcome = this.#entries.get(requestId)?.outcome
    if (outcome === undefined) return undefined
    if (outcome.state !== 'answered')
      return {
        requestId,
        state: outcome.state,
        decision: outcome.state === 'expired' ? 'deny' : null,
        by: null,
      }
    return { requestId, state: 'answered', decision: outcome.answer.decision, by: outcome.answer.by }
  }

  #pending(): readonly Entry<T>[] {
    return [...this.#entries.values()].filter(({ outcome }) => outcome.state === 'pending')
  }
}

function isSame(a: ApprovalAnswer, b: ApprovalAnswer): boolean {
  return (
    a.by === b.by &&
    a.decision === b.decision &&
    a.message === b.message &&
    a.acceptsEdits === b.acceptsEdits &&
    a.updatedInput === b.updatedInput &&
    isSameText(a.answers ?? {}, b.answers ?? {})
  )
}

function isSameText(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key])
}
