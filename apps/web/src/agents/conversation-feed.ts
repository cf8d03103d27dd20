import { createStore, type Store } from '@sandwire/client'
import { backOffMs } from '@sandwire/protocol'
import { type Conversation, openConversationSocket, readConversation } from '../api/conversations.ts'
import { ApiError, isUnreachable } from '../api/request.ts'
import type { RequestAnswer } from '../api/runs.ts'
import {
  type ConversationState,
  readFrame,
  type Received,
  type RestorePoints,
  type SandboxStatus,
} from './conversation-frames.ts'
import { FrameQueue } from './frame-queue.ts'
import { Transcript, type TranscriptState } from './transcript.ts'
import { type UnsentMessage, UnsentMessages } from './unsent-messages.ts'

const RETRIES = { firstMs: 500, maxMs: 15_000 }
/** Between two reads of the conversation while its agent works: its spend is not a frame. */
const READ_MS = 5_000
/** Keeps proxies from closing the socket; answered without waking the server's object. */
const PING_MS = 30_000
const PING = '{"type":"ping"}'

export type FeedFrame = Readonly<Record<string, unknown>> & { readonly type: string }

/** What is shown of a conversation beside its transcript. */
export interface FeedState {
  /** False: what is shown is the last that was known. */
  readonly isOnline: boolean
  /** All stored entries are shown. */
  readonly isComplete: boolean
  readonly sandbox: SandboxStatus
  /** What happens to the files of the sandbox, as `session_status` says; empty: nothing. */
  readonly files: string
  /** Undefined until the server has said it. */
  readonly conversation: ConversationState | undefined
  readonly points: RestorePoints
}

export interface FeedOptions {
  readonly storage: Pick<Storage, 'getItem' | 'setItem'>
  /** Shows why the server refused something. */
  readonly onRefused: (message: string) => void
  /** The agent has begun or stopped to work, or waits. */
  readonly onActivity: () => void
}

/** Keeps a conversation and its transcript up to date, and takes frames to the server. */
export class ConversationFeed {
  readonly id: string
  readonly unsent: UnsentMessages
  readonly #options: FeedOptions
  readonly #record = createStore<Conversation | undefined>(undefined)
  readonly #problem = createStore<string | undefined>(undefined)
  readonly #state = createStore<FeedState>({
    isOnline: false,
    isComplete: false,
    sandbox: 'disconnected',
    files: '',
    conversation: undefined,
    points: { versions: new Map(), canUndo: false, problem: null },
  })
  readonly #transcript = new Transcript()
  readonly #shown = createStore<TranscriptState>(this.#transcript.state)
  readonly #frames = new FrameQueue<Received>({
    take: (received) => this.#take(received),
    draw: () => this.#shown.set(this.#transcript.state),
  })
  #socket: WebSocket | undefined
  /** Since a connection worked. */
  #failures = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #reader: ReturnType<typeof setTimeout> | undefined
  #pinger: ReturnType<typeof setInterval> | undefined
  #isOpen = false

  constructor(id: string, options: FeedOptions) {
    this.id = id
    this.#options = options
    this.unsent = new UnsentMessages(options.storage, id)
  }

  /** The conversation as the server describes it: its spend, sandbox and settings. */
  get record(): Store<Conversation | undefined> {
    return this.#record
  }

  get state(): Store<FeedState> {
    return this.#state
  }

  get transcript(): Store<TranscriptState> {
    return this.#shown
  }

  /** Why the conversation cannot be shown. */
  get problem(): Store<string | undefined> {
    return this.#problem
  }

  /** Listens until the returned function is called. */
  open(): () => void {
    this.#isOpen = true
    this.#connect()
    void this.read()
    this.#pinger = setInterval(
      () => this.#socket?.readyState === WebSocket.OPEN && this.#socket.send(PING),
      PING_MS,
    )
    const retry = (): void => {
      this.#failures = 0
      if (this.#socket === undefined) this.#connect()
    }
    window.addEventListener('online', retry)
    return () => {
      window.removeEventListener('online', retry)
      this.#isOpen = false
      clearTimeout(this.#timer)
      clearTimeout(this.#reader)
      clearInterval(this.#pinger)
      const socket = this.#socket
      this.#socket = undefined
      socket?.close()
      this.#frames.stop()
    }
  }

  /** Reads the conversation again, now and regularly while its agent works. */
  async read(): Promise<void> {
    clearTimeout(this.#reader)
    try {
      this.#record.set(await readConversation(this.id))
      this.#problem.set(undefined)
    } catch (caught) {
      // One that is known is shown as it was.
      const isGone = caught instanceof ApiError && caught.status === 404
      if (
        caught instanceof ApiError &&
        (isGone || (this.#record.get() === undefined && !isUnreachable(caught)))
      )
        this.#problem.set(caught.message)
    }
    clearTimeout(this.#reader)
    const state = this.#state.get().conversation?.state
    if (this.#isOpen && (this.#record.get() === undefined || state === 'starting' || state === 'working'))
      this.#reader = setTimeout(() => void this.read(), READ_MS)
  }

  /** Sends a message now or, while the server cannot be reached, later; false when too many wait. `whenIdle`: it waits for the end of the turn. */
  send(text: string, whenIdle: boolean): boolean {
    const message = { id: crypto.randomUUID(), text, whenIdle }
    if (!this.unsent.add(message)) return false
    this.#sendMessage(message)
    return true
  }

  /** Sends a message again that the server refused. */
  retry(id: string): void {
    const message = this.unsent.all.get().find((each) => each.id === id)
    if (message === undefined) return
    const again = { id, text: message.text, whenIdle: message.whenIdle }
    this.unsent.add(again)
    this.#sendMessage(again)
  }

  answer(requestId: string, { answers, decision, ...more }: RequestAnswer): boolean {
    if (answers !== undefined && decision === 'allow')
      return this.transmit({ type: 'ask_user_answer', requestId, answers })
    return this.transmit({
      type: 'permission_response',
      requestId,
      decision,
      ...more,
    })
  }

  /** Sends a frame; false while the server cannot be reached. */
  transmit(frame: FeedFrame): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false
    this.#socket.send(JSON.stringify(frame))
    return true
  }

  #sendMessage({ id, text, whenIdle }: UnsentMessage): void {
    this.transmit({ type: 'message', id, content: text, whenIdle })
  }

  #connect(): void {
    clearTimeout(this.#timer)
    if (!this.#isOpen || this.#problem.get() !== undefined) return
    const socket = openConversationSocket(this.id, this.#transcript.lastSeq)
    this.#socket = socket
    socket.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
      const received = typeof data === 'string' && this.#socket === socket ? readFrame(data) : undefined
      if (received !== undefined) this.#frames.push(received)
    })
    socket.addEventListener('close', () => {
      if (this.#socket === socket) this.#disconnected()
    })
  }

  #disconnected(): void {
    this.#socket = undefined
    this.#set({ isOnline: false })
    if (!this.#isOpen) return
    this.#failures += 1
    this.#timer = setTimeout(() => this.#connect(), backOffMs(this.#failures, Math.random(), RETRIES))
    // A refused upgrade does not say why.
    void this.read()
  }

  #take(received: Received): void {
    switch (received.kind) {
      case 'entry':
        return this.#transcript.add(received.entry)
      case 'seen':
        return this.#transcript.skip(received.seq)
      case 'partial': {
        const { text, isThinking } = received
        return this.#transcript.addPartial({ kind: isThinking ? 'thinking' : 'text', messageId: '', text })
      }
      case 'state':
        return this.#changed(received.state)
      case 'connection':
        return this.#set({ sandbox: received.status })
      case 'files':
        return this.#set({ files: received.status })
      case 'restore_points':
        return this.#set({ points: received.points })
      case 'acknowledged':
        return this.unsent.remove(received.id)
      case 'refused':
        if (received.id !== undefined && this.unsent.refuse(received.id, received.message)) return
        return this.#options.onRefused(received.message)
      case 'history_end':
        this.#failures = 0
        this.#set({ isOnline: true, isComplete: true })
        for (const message of this.unsent.all.get())
          if (message.problem === undefined) this.#sendMessage(message)
    }
  }

  #changed(conversation: ConversationState): void {
    const before = this.#state.get().conversation?.state
    this.#set({ conversation })
    if (conversation.state === before) return
    void this.read()
    this.#options.onActivity()
  }

  #set(changes: Partial<FeedState>): void {
    this.#state.set({ ...this.#state.get(), ...changes })
  }
}
