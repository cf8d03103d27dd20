import { type AgentMessage, decodeAgentMessage } from './agent-message.ts'

/** Events are stored together: this many, or what arrives within this time after others. */
const MAX_BATCH = 64
const BATCH_MS = 10
const CLOSE_NORMAL = 1000

/** The socket on which sandboxd sends the events of a program. */
export class EventSocket {
  readonly run: string
  readonly #socket: WebSocket
  readonly #onMessages: (messages: readonly AgentMessage[]) => void
  #batch: AgentMessage[] = []
  #timer: ReturnType<typeof setTimeout> | null = null
  #isClosed = false

  constructor(
    run: string,
    socket: WebSocket,
    on: { readonly messages: (messages: readonly AgentMessage[]) => void; readonly closed: () => void },
  ) {
    this.run = run
    this.#socket = socket
    this.#onMessages = on.messages
    socket.accept()
    const end = (): void => {
      if (this.#isClosed) return
      this.#flush()
      this.#isClosed = true
      on.closed()
    }
    socket.addEventListener('message', ({ data }) => this.#received(data))
    socket.addEventListener('close', end)
    socket.addEventListener('error', end)
  }

  /** Closes the socket; nothing is reported afterwards. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    try {
      this.#socket.close(CLOSE_NORMAL)
    } catch {
      // Closed already.
    }
  }

  #received(data: unknown): void {
    const message = typeof data === 'string' ? decodeAgentMessage(data) : undefined
    if (message === undefined || this.#isClosed) return
    this.#batch.push(message)
    if (this.#timer !== null && this.#batch.length < MAX_BATCH) return
    this.#flush()
  }

  /** Passes on the collected messages; later ones form the next batch. */
  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = null
    if (this.#batch.length > 0 && !this.#isClosed) this.#timer = setTimeout(() => this.#flush(), BATCH_MS)
    const batch = this.#batch
    this.#batch = []
    if (batch.length > 0 && !this.#isClosed) this.#onMessages(batch)
  }
}
