import type { AgentSetting, ClaudeStreamOptions } from '@sandwire/agent'
import { z } from 'zod'

/** Answered requests that are remembered, because slower clients still have to read them. */
const MAX_ANSWERED = 256
/** Of the stored `system/init`, which lists tools and commands; a longer one is not stored. */
const MAX_INIT_CHARS = 64 * 1024

const stateSchema = z.object({
  model: z.string(),
  maxThinkingTokens: z.int().nullable(),
  mode: z.enum(['default', 'acceptEdits', 'plan']),
  /** The last line that any client was sent: its id, and its number among the lines that have one. */
  mark: z.object({ id: z.string(), count: z.int() }).nullable(),
  /** The last `system/init` that any client was sent: a long turn leaves the API's replay without it. */
  init: z.string().nullable().default(null),
  /** A turn has succeeded. */
  hasWorked: z.boolean(),
})
type State = z.infer<typeof stateSchema>

/** What the clients of one session of Claude Code share. It is stored, so that clients can come back to another instance of the object. */
export class ClaudeSession {
  #state: State
  readonly #save: (state: string) => void
  readonly #answered = new Set<string>()

  constructor(state: string, save: (state: string) => void) {
    this.#state = stateSchema.parse(JSON.parse(state))
    this.#save = save
  }

  /** The stored form of a session that begins. */
  static begin({ model, maxThinkingTokens, permissionMode }: ClaudeStreamOptions): string {
    const state: State = {
      model: model ?? 'default',
      maxThinkingTokens: maxThinkingTokens ?? null,
      mode: permissionMode ?? 'default',
      mark: null,
      init: null,
      hasWorked: false,
    }
    return JSON.stringify(state)
  }

  /** As clients receive them. */
  get settings(): { readonly max_thinking_tokens: number | null; readonly model: string } {
    const { model, maxThinkingTokens } = this.#state
    return { max_thinking_tokens: maxThinkingTokens, model }
  }

  get mode(): State['mode'] {
    return this.#state.mode
  }

  get mark(): State['mark'] {
    return this.#state.mark
  }

  get init(): State['init'] {
    return this.#state.init
  }

  get hasWorked(): boolean {
    return this.#state.hasWorked
  }

  set(setting: AgentSetting): void {
    switch (setting.subtype) {
      case 'set_permission_mode':
        return this.#change({ mode: setting.mode })
      case 'set_model':
        return this.#change({ model: setting.model })
      case 'set_max_thinking_tokens':
        return this.#change({ maxThinkingTokens: setting.max_thinking_tokens })
    }
  }

  /** A client was sent this line; `init`: its text, if it is a `system/init`. */
  sent(id: string, count: number, init?: string): void {
    if (count <= (this.mark?.count ?? 0)) return
    const stored = init === undefined ? this.init : init.length > MAX_INIT_CHARS ? null : init
    this.#change({ mark: { id, count }, init: stored })
  }

  worked(): void {
    if (!this.hasWorked) this.#change({ hasWorked: true })
  }

  /** False: a client has answered the request before. */
  answer(requestId: string): boolean {
    if (this.#answered.has(requestId)) return false
    const [oldest] = this.#answered
    if (this.#answered.size >= MAX_ANSWERED && oldest !== undefined) this.#answered.delete(oldest)
    this.#answered.add(requestId)
    return true
  }

  isAnswered(requestId: string): boolean {
    return this.#answered.has(requestId)
  }

  #change(changes: Partial<State>): void {
    this.#state = { ...this.#state, ...changes }
    this.#save(JSON.stringify(this.#state))
  }
}
