import type { ConversationEntry, LiveFrame, StoredFrame } from './frames.ts'
import { type PersistedMessage, toPersisted } from './persisted-message.ts'
import type { ConversationSnapshot } from './snapshot.ts'

export type ConversationEffect =
  /** Stored, then sent to every browser. */
  | { readonly kind: 'append'; readonly entry: ConversationEntry }
  /** Sent to every browser. */
  | { readonly kind: 'broadcast'; readonly frame: LiveFrame }
  | { readonly kind: 'send'; readonly socket: string; readonly frame: LiveFrame }
  /** Sent to the operator's API, in order. */
  | { readonly kind: 'persist'; readonly key: string; readonly message: PersistedMessage }

/** The state of a conversation while it takes one input, and what follows from it. */
export class ConversationDraft {
  readonly nowMs: number
  readonly effects: ConversationEffect[] = []
  readonly #id: string
  #state: ConversationSnapshot

  constructor(id: string, state: ConversationSnapshot, nowMs: number) {
    this.#id = id
    this.#state = state
    this.nowMs = nowMs
  }

  get state(): ConversationSnapshot {
    return this.#state
  }

  set(changes: Partial<ConversationSnapshot>): void {
    this.#state = { ...this.#state, ...changes }
  }

  /** Stores a frame; returns its number. */
  append(frame: StoredFrame): number {
    const seq = this.#state.lastSeq + 1
    this.set({ lastSeq: seq })
    this.effects.push({ kind: 'append', entry: { seq, atMs: this.nowMs, frame } })
    return seq
  }

  broadcast(frame: LiveFrame): void {
    this.effects.push({ kind: 'broadcast', frame })
  }

  send(socket: string, frame: LiveFrame): void {
    this.effects.push({ kind: 'send', socket, frame })
  }

  /** Sends the message of an entry to the operator's API. */
  persist(seq: number, message: PersistedMessage): void {
    this.effects.push({ kind: 'persist', key: `${this.#id}-${seq}`, message })
  }

  /** The agent has a message, and a turn begins or goes on. */
  delivered(id: string): void {
    const { queue, turn, tokens } = this.#state
    if (!queue.some((message) => message.id === id)) return
    this.broadcast({ type: 'agent_status', status: 'pending' })
    this.set({
      queue: queue.filter((message) => message.id !== id),
      turn: turn ?? { text: '', tokens },
    })
  }

  /** The agent has a message, and with it the notice about restored files. */
  noticeSent(id: string): void {
    const { notice } = this.#state
    if (notice !== null) this.set({ notice: null, sentNotice: { id, notice } })
  }

  /** The agent has not read a message. */
  canceled(id: string): void {
    const { sentNotice } = this.#state
    if (sentNotice?.id === id) this.set({ notice: this.#state.notice ?? sentNotice.notice, sentNotice: null })
    const message = 'The agent was interrupted or ended before it read the message. Send it again.'
    this.append({ type: 'message_dropped', id, reason: 'canceled', message })
  }

  /** A request is not open any more. */
  resolve(
    requestId: string,
    outcome: 'allow' | 'deny' | 'expired' | 'withdrawn',
    by: string | null = null,
  ): void {
    this.append({ type: 'request_resolved', requestId, outcome, by, byName: null })
  }

  /** Ends the turn, if there is one. */
  done(stopReason: string): void {
    const { turn, tokens, labels, resume, lastSeq } = this.#state
    if (turn === null) return
    const tokensUsed = Math.max(0, tokens - turn.tokens)
    const messageId = `${this.#id}-${lastSeq + 1}`
    const seq = this.append({ type: 'done', messageId, metadata: { tokensUsed, stopReason } })
    const { text } = turn
    if (text !== '')
      this.persist(
        seq,
        toPersisted({ kind: 'assistant', text, tokensUsed, stopReason, agentSession: resume, labels }),
      )
    this.set({ turn: null, ...(stopReason === 'end_turn' ? {} : { isPaused: true }) })
  }

  /** True when the program was to continue a conversation and has not begun to. */
  get cannotResume(): boolean {
    const { program, resume } = this.#state
    return program.kind === 'working' && program.first !== null && resume !== null
  }
}
