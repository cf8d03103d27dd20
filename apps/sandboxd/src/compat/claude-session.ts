import {
  type AgentSetting,
  type AgentStart,
  type JournalEntry,
  type Json,
  recordAt,
  textAt,
} from '@sandwire/agent'

type PermissionMode = Extract<AgentSetting, { subtype: 'set_permission_mode' }>['mode']

/** Settings as clients receive them. */
interface Settings {
  readonly max_thinking_tokens: number | null
  readonly model: string
}

/** A line of the journal. */
interface Line {
  readonly seq: number
  readonly text: string
}

/** What clients of `/ws/claude-stream` that join later have to know of a run, kept from its journal. */
export class ClaudeSession {
  readonly #isContinued: boolean
  #settings: Settings
  #mode: PermissionMode
  #init: Line | undefined
  /** Requests for permission that wait for an answer, by id. */
  readonly #pending = new Map<string, Line>()
  /** Number of the last entry that any client was sent: the next client gets what none has got. */
  #sentSeq = 0

  constructor({ model, claude, resume }: Pick<AgentStart, 'model' | 'claude' | 'resume'>) {
    this.#isContinued = resume !== undefined
    this.#settings = { max_thinking_tokens: claude?.maxThinkingTokens ?? null, model: model ?? 'default' }
    this.#mode = claude?.permissionMode ?? 'default'
  }

  get settings(): Settings {
    return this.#settings
  }

  get mode(): PermissionMode {
    return this.#mode
  }

  /** Lines that a client was sent, and that the next one needs too: the last `system/init`, and requests that wait. */
  get repeated(): readonly string[] {
    const lines = [...(this.#init === undefined ? [] : [this.#init]), ...this.#pending.values()]
    return lines.filter(({ seq }) => seq <= this.#sentSeq).map(({ text }) => text)
  }

  /** The program did not find the conversation that it was to continue. */
  get isMissing(): boolean {
    return this.#isContinued && this.#init === undefined
  }

  get sentSeq(): number {
    return this.#sentSeq
  }

  sent(seq: number): void {
    this.#sentSeq = Math.max(this.#sentSeq, seq)
  }

  /** The next entry of the journal. */
  entry(entry: JournalEntry): void {
    switch (entry.kind) {
      case 'line':
        if ('line' in entry) this.#line(entry.line, entry.seq)
        return
      case 'approval':
        this.#pending.delete(entry.requestId)
        return
      case 'setting':
        return this.#set(entry.setting)
      case 'interrupt':
      case 'stop':
      case 'exit':
        return this.#pending.clear()
      case 'event':
      case 'message':
      case 'not_started':
      case 'started':
      case 'stderr':
      case 'tick':
    }
  }

  #line(line: Json, seq: number): void {
    const kept = { seq, text: JSON.stringify(line) }
    const id = textAt(line, 'request_id') ?? ''
    switch (textAt(line, 'type')) {
      case 'system':
        if (textAt(line, 'subtype') === 'init') this.#init = kept
        return
      case 'control_request':
        if (textAt(recordAt(line, 'request'), 'subtype') === 'can_use_tool') this.#pending.set(id, kept)
        return
      case 'control_cancel_request':
        this.#pending.delete(id)
        return
      default:
    }
  }

  #set(setting: AgentSetting): void {
    switch (setting.subtype) {
      case 'set_permission_mode':
        this.#mode = setting.mode
        return
      case 'set_model':
        this.#settings = { ...this.#settings, model: setting.model }
        return
      case 'set_max_thinking_tokens':
        this.#settings = { ...this.#settings, max_thinking_tokens: setting.max_thinking_tokens }
    }
  }
}
