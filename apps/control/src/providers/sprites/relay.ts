import type { WebSocketClient } from './websocket-client.ts'

/** Bytes of a client that may wait for the sprite; `sandwire.v1` bounds them by its credit. */
const MAX_QUEUED_BYTES = 8 * 1024 * 1024
/**
 * Output of one connection whose dialect has no acknowledgments. workerd does not report how much of what was sent has left, so
 * the total bounds what a client that does not read can make control buffer; clients of these dialects reconnect by themselves.
 */
export const MAX_UNACKNOWLEDGED_BYTES = 16 * 1024 * 1024
const TRY_AGAIN_LATER = 1013
const ABNORMAL = 1011

/** The end of a WebSocket pair that the relay holds. */
export interface RelayedSocket {
  send(message: string | Uint8Array): void
  close(code?: number, reason?: string): void
}

/** Passes messages between a client and sandboxd, in both directions. */
export class Relay {
  readonly #client: RelayedSocket
  readonly #sandboxd: WebSocketClient
  readonly #onEnd: (code: number) => void
  /** True: windows of the protocol bound what is in flight. */
  readonly #hasWindows: boolean
  #sentBytes = 0
  /** Messages of the client that wait for the write in progress; sent together, because each write costs a turn. */
  #queue: (string | Uint8Array)[] = []
  #queuedBytes = 0
  #isWriting = false
  #isEnded = false

  constructor(
    client: RelayedSocket,
    sandboxd: WebSocketClient,
    hasWindows: boolean,
    onEnd: (code: number) => void,
  ) {
    this.#client = client
    this.#sandboxd = sandboxd
    this.#hasWindows = hasWindows
    this.#onEnd = onEnd
  }

  /** Passes on what sandboxd sends until either side ends. */
  async run(): Promise<void> {
    try {
      for (
        let message = await this.#sandboxd.read();
        message !== undefined;
        message = await this.#sandboxd.read()
      ) {
        const content = message.kind === 'text' ? message.text : message.bytes
        this.#sentBytes += content.length
        this.#client.send(content)
        if (!this.#hasWindows && this.#sentBytes > MAX_UNACKNOWLEDGED_BYTES)
          return this.end(TRY_AGAIN_LATER, 'reconnect to continue')
      }
      const { code, reason } = this.#sandboxd.end ?? { code: ABNORMAL, reason: '' }
      this.end(code, reason)
    } catch {
      // The connection to the sprite broke; the client resumes.
      this.end(ABNORMAL, '')
    }
  }

  /** A message of the client. */
  receive(message: string | Uint8Array): void {
    this.#queue.push(message)
    this.#queuedBytes += message.length
    if (this.#queuedBytes > MAX_QUEUED_BYTES) return this.end(TRY_AGAIN_LATER, 'too much input is waiting')
    if (!this.#isWriting) void this.#write()
  }

  async #write(): Promise<void> {
    this.#isWriting = true
    try {
      while (this.#queue.length > 0) {
        const messages = this.#queue.splice(0)
        this.#queuedBytes = 0
        await this.#sandboxd.send(...messages)
      }
    } catch {
      // The loop of `run` notices the end of the connection.
    }
    this.#isWriting = false
  }

  /** The client closed its side. */
  clientClosed(code: number, reason: string): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#sandboxd.close(code, reason)
    this.#onEnd(code)
  }

  end(code: number | undefined, reason: string): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#sandboxd.close()
    try {
      this.#client.close(code, reason)
    } catch {
      // It is closed, or the code cannot be sent.
      this.#client.close(ABNORMAL)
    }
    this.#onEnd(code ?? ABNORMAL)
  }
}
