import type {
  AgentState,
  InputRequest,
  MessageReceipt,
  Partial as PartialMessage,
  RunEvent,
  Status,
  TodoItem,
} from '@sandwire/agent'

/** One entry of the transcript. */
export type TranscriptItem = { readonly id: string } & (
  | { readonly kind: 'text'; readonly text: string; readonly isThinking: boolean }
  | {
      readonly kind: 'tool'
      readonly name: string
      readonly title: string
      readonly input: unknown
      readonly isSubagent: boolean
      readonly result?: ToolResult
    }
  | {
      readonly kind: 'message'
      readonly messageId: string
      readonly text: string
      readonly by: string
      /** Null: unknown. */
      readonly receipt: MessageReceipt | null
      /** Why the agent did not read it. */
      readonly problem?: string
    }
  | { readonly kind: 'request'; readonly request: InputRequest; readonly outcome?: RequestOutcome }
  | { readonly kind: 'plan'; readonly text: string }
  | { readonly kind: 'note'; readonly tone: 'info' | 'error'; readonly note: Note }
)

export interface ToolResult {
  readonly isError: boolean
  readonly content: string
  readonly omittedChars: number
}

export interface RequestOutcome {
  readonly outcome: 'allow' | 'deny' | 'expired' | 'withdrawn'
  readonly by: string | null
  /** Answers to questions; absent for runs. */
  readonly answers?: Readonly<Record<string, string>>
  /** The reason of a denial; absent for runs. */
  readonly message?: string
}

/** Content of a note; its text is chosen where it is rendered. */
export type Note =
  | { readonly kind: 'output'; readonly text: string }
  | { readonly kind: 'retry'; readonly attempt: number; readonly maxAttempts: number }
  | { readonly kind: 'stopping'; readonly message: string }
  | { readonly kind: 'warning'; readonly message: string }
  | { readonly kind: 'ended'; readonly status: string }
  /** `text`: that of the message; null: the last restore was undone. */
  | { readonly kind: 'restored'; readonly text: string | null; readonly by: string }

/** What happens in a conversation, and not in a run. */
export type ConversationEvent =
  | { readonly type: 'user_message'; readonly id: string; readonly text: string; readonly by: string }
  | { readonly type: 'message_dropped'; readonly id: string; readonly problem: string }
  | ({ readonly type: 'request_resolved'; readonly requestId: string } & RequestOutcome)
  | { readonly type: 'turn_ended' }
  | { readonly type: 'files_restored'; readonly message: string | null; readonly by: string }
  | { readonly type: 'agent_error'; readonly message: string }

export interface TranscriptEntry {
  readonly seq: number
  readonly event: RunEvent | ConversationEvent
}

/** Items in a chunk. A change makes a new chunk, and only changed chunks are drawn again. */
const CHUNK = 20
/** Characters of output on stderr that are joined to one note. */
const MAX_OUTPUT_CHARS = 8 * 1024
/** Most characters shown of a message that is being written. */
const MAX_PARTIAL_CHARS = 4 * 1024

type Chunk = readonly TranscriptItem[]

/** State of a run or conversation that follows from its events. Immutable. */
export interface TranscriptState {
  readonly chunks: readonly Chunk[]
  readonly todo: readonly TodoItem[]
  readonly active: string | undefined
  /** Requests that wait for an answer. */
  readonly pending: readonly InputRequest[]
  readonly agentState: AgentState | undefined
  /** Paths, in the order of their last change. */
  readonly files: readonly string[]
  /** Text that the agent is writing. */
  readonly partial: { readonly text: string; readonly isThinking: boolean } | undefined
  readonly lastSeq: number
  readonly isComplete: boolean
  /** Item of the last restore of the files. */
  readonly lastRestore: string | undefined
}

/** Builds the transcript of a run or conversation from its events. Events that it already has are ignored. */
export class Transcript {
  #chunks: TranscriptItem[][] = []
  /** Chunks that no state has shown yet, and so may be changed in place. */
  #fresh = new Set<TranscriptItem[]>()
  /** Chunk and index of items that can change. */
  readonly #at = new Map<string, readonly [number, number]>()
  #todo: readonly TodoItem[] = []
  #active: string | undefined
  readonly #pending = new Map<string, InputRequest>()
  #agentState: AgentState | undefined
  readonly #files = new Set<string>()
  #partial: { readonly messageId: string; readonly text: string; readonly isThinking: boolean } | undefined
  #lastSeq = 0
  #isComplete = false
  #lastRestore: string | undefined

  get state(): TranscriptState {
    this.#fresh.clear()
    return {
      chunks: [...this.#chunks],
      todo: this.#todo,
      active: this.#active,
      pending: [...this.#pending.values()],
      agentState: this.#agentState,
      files: [...this.#files],
      partial: this.#partial,
      lastSeq: this.#lastSeq,
      isComplete: this.#isComplete,
      lastRestore: this.#lastRestore,
    }
  }

  add({ seq, event }: TranscriptEntry): void {
    if (seq <= this.#lastSeq) return
    this.#lastSeq = seq
    this.#addEvent(String(seq), event)
  }

  get lastSeq(): number {
    return this.#lastSeq
  }

  /** An event that is not shown. */
  skip(seq: number): void {
    this.#lastSeq = Math.max(this.#lastSeq, seq)
  }

  addPartial({ kind, messageId, text }: PartialMessage['partial']): void {
    if (kind === 'input') return
    const isThinking = kind === 'thinking'
    const isSame = this.#partial?.messageId === messageId && this.#partial.isThinking === isThinking
    const before = isSame ? (this.#partial?.text ?? '') : ''
    this.#partial = { messageId, isThinking, text: (before + text).slice(-MAX_PARTIAL_CHARS) }
  }

  #addEvent(id: string, event: TranscriptEntry['event']): void {
    switch (event.type) {
      case 'user_message':
        return this.#push({
          id: `message ${event.id}`,
          kind: 'message',
          messageId: event.id,
          text: event.text,
          by: event.by,
          receipt: null,
        })
      case 'message_dropped':
        return this.#change(`message ${event.id}`, (item) => ({
          ...item,
          receipt: 'canceled',
          problem: event.problem,
        }))
      case 'request_resolved': {
        const { type: _type, requestId, ...outcome } = event
        return this.#resolve(requestId, outcome)
      }
      case 'turn_ended':
        this.#partial = undefined
        return
      case 'files_restored': {
        this.#lastRestore = id
        const item = event.message === null ? undefined : this.#itemOf(`message ${event.message}`)
        const text = item?.kind === 'message' ? item.text : ''
        const note = { kind: 'restored', text: event.message === null ? null : text, by: event.by } as const
        return this.#note(id, 'info', note)
      }
      case 'agent_error':
        return this.#note(id, 'error', { kind: 'warning', message: event.message })
      case 'text':
        this.#partial = undefined
        return this.#push({ id, kind: 'text', text: event.text, isThinking: event.thinking === true })
      case 'tool_call': {
        const { name, title, input, subagent } = event
        return this.#push({
          id: `tool ${event.id}`,
          kind: 'tool',
          name,
          title,
          input,
          isSubagent: subagent !== undefined,
        })
      }
      case 'tool_result': {
        const { isError, content, omittedChars = 0 } = event
        return this.#change(`tool ${event.id}`, (item) => ({
          ...item,
          result: { isError, content, omittedChars },
        }))
      }
      case 'todo':
        this.#todo = event.items
        this.#active = event.active
        return
      case 'plan':
        return this.#push({ id, kind: 'plan', text: event.text })
      case 'file_change':
        this.#files.delete(event.path)
        this.#files.add(event.path)
        return
      case 'awaiting_input': {
        const { type: _type, ...request } = event
        // The composer shows that the agent takes a message.
        if (request.kind === 'message') return
        this.#pending.set(request.requestId, request)
        return this.#push({ id: `request ${request.requestId}`, kind: 'request', request })
      }
      case 'stderr':
        return this.#addOutput(id, event.data)
      case 'result':
        return this.#push({
          id,
          kind: 'note',
          tone: event.status === 'completed' || event.status === 'aborted' ? 'info' : 'error',
          note: { kind: 'ended', status: event.status },
        })
      case 'complete':
        this.#isComplete = true
        this.#partial = undefined
        this.#pending.clear()
        return
      case 'status':
        return this.#addStatus(id, event)
      // `text` has the same words as `stdout`; control's count of the usage is better.
      case 'stdout':
      case 'usage':
    }
  }

  #addStatus(id: string, status: Status): void {
    switch (status.status) {
      case 'state':
        this.#agentState = status.state
        return
      case 'message': {
        const { id: message, text, by, receipt } = status
        const key = `message ${message}`
        if (this.#at.has(key)) return this.#change(key, (item) => ({ ...item, receipt }))
        return this.#push({ id: key, kind: 'message', messageId: message, text, by, receipt })
      }
      case 'approval': {
        const { requestId, outcome, by } = status
        return this.#resolve(requestId, { outcome, by })
      }
      case 'retry': {
        const { attempt, maxAttempts } = status
        return this.#note(id, 'info', { kind: 'retry', attempt, maxAttempts })
      }
      case 'stopping':
        return this.#note(id, 'info', { kind: 'stopping', message: status.message })
      case 'warning':
        return this.#note(id, 'error', { kind: 'warning', message: status.message })
      case 'session':
    }
  }

  #resolve(requestId: string, outcome: RequestOutcome): void {
    this.#pending.delete(requestId)
    this.#change(`request ${requestId}`, (item) => ({ ...item, outcome }))
  }

  #note(id: string, tone: 'info' | 'error', note: Note): void {
    this.#push({ id, kind: 'note', tone, note })
  }

  /** Joins output that follows output. */
  #addOutput(id: string, data: string): void {
    const last = this.#chunks.at(-1)?.at(-1)
    const isOutput = last?.kind === 'note' && last.note.kind === 'output'
    const before = isOutput && last.note.kind === 'output' ? last.note.text : ''
    if (!isOutput || before.length + data.length > MAX_OUTPUT_CHARS)
      return this.#note(id, 'error', { kind: 'output', text: data })
    this.#replace(this.#chunks.length - 1, (this.#chunks.at(-1)?.length ?? 1) - 1, {
      ...last,
      note: { kind: 'output', text: before + data },
    })
  }

  #push(item: TranscriptItem): void {
    const last = this.#chunks.at(-1)
    if (last === undefined || last.length >= CHUNK) {
      const chunk = [item]
      this.#chunks.push(chunk)
      this.#fresh.add(chunk)
    } else this.#writable(this.#chunks.length - 1).push(item)
    const chunk = this.#chunks.length - 1
    this.#at.set(item.id, [chunk, (this.#chunks[chunk]?.length ?? 1) - 1])
  }

  #itemOf(id: string): TranscriptItem | undefined {
    const at = this.#at.get(id)
    return at === undefined ? undefined : this.#chunks[at[0]]?.[at[1]]
  }

  #change(id: string, change: (item: TranscriptItem) => object): void {
    const at = this.#at.get(id)
    const item = this.#itemOf(id)
    if (at !== undefined && item !== undefined) this.#replace(at[0], at[1], change(item) as TranscriptItem)
  }

  #replace(chunk: number, index: number, item: TranscriptItem): void {
    this.#writable(chunk)[index] = item
  }

  /** The chunk, copied if a state has shown it. */
  #writable(chunk: number): TranscriptItem[] {
    const shown = this.#chunks[chunk] ?? []
    if (this.#fresh.has(shown)) return shown
    const copy = [...shown]
    this.#chunks[chunk] = copy
    this.#fresh.add(copy)
    return copy
  }
}
