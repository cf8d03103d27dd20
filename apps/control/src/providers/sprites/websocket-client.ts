import { concatBytes } from '@sandwire/bytes'
import { type ByteDuplex, readResponseHead } from './byte-duplex.ts'
import { BodyDecoder, bodyLengthOf, formatRequestHead, type ResponseHead } from './http-message.ts'
import {
  encodeClose,
  encodeMessage,
  encodePing,
  encodePong,
  FrameDecoder,
  type WebSocketEvent,
  type WebSocketMessage,
} from './websocket-frames.ts'

/** Between pings. */
const PING_MS = 15_000
/** Without any byte for this long, the connection is broken. */
const SILENCE_MS = 45_000

/** Of the body of a refused upgrade. */
const MAX_REFUSAL_BYTES = 16 * 1024

const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** The server answered an upgrade with something else than 101. The URL, which may hold secrets, is in no message. */
export class UpgradeRefused extends Error {
  override readonly name = 'UpgradeRefused'
  readonly status: number
  readonly body: Uint8Array<ArrayBuffer>

  constructor(status: number, body: Uint8Array<ArrayBuffer>) {
    super(`The server responded with ${status} instead of 101`)
    this.status = status
    this.body = body
  }
}

export interface UpgradeRequest {
  readonly host: string
  /** Path and query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
}

export interface WebSocketDependencies {
  readonly random: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>
  readonly nowMs: () => number
  /** Calls repeatedly; returns what stops it. */
  readonly every: (ms: number, run: () => void) => () => void
}

export type WebSocketEnd = { readonly code: number | undefined; readonly reason: string }

async function acceptOf(key: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(key + ACCEPT_SUFFIX))
  return btoa(String.fromCharCode(...new Uint8Array(digest)))
}

/** The body of a refusal, as far as it is short. */
async function readRefusal(
  duplex: ByteDuplex,
  head: ResponseHead,
  rest: Uint8Array,
): Promise<Uint8Array<ArrayBuffer>> {
  const decoder = new BodyDecoder(bodyLengthOf(head, 'GET'))
  let body = concatBytes(decoder.push(rest))
  while (!decoder.isDone && body.length < MAX_REFUSAL_BYTES) {
    const bytes = await duplex.read()
    if (bytes === undefined) break
    body = concatBytes([body, ...decoder.push(bytes)])
  }
  return body
}

/** A WebSocket over any byte connection, with back-pressure in both directions and pings. */
export class WebSocketClient {
  readonly headers: Headers
  readonly #duplex: ByteDuplex
  readonly #deps: WebSocketDependencies
  readonly #decoder = new FrameDecoder()
  readonly #events: WebSocketEvent[] = []
  readonly #stopPings: () => void
  #receivedMs: number
  #end: WebSocketEnd | undefined

  private constructor(duplex: ByteDuplex, headers: Headers, deps: WebSocketDependencies) {
    this.#duplex = duplex
    this.headers = headers
    this.#deps = deps
    this.#receivedMs = deps.nowMs()
    this.#stopPings = deps.every(PING_MS, () => this.#ping())
  }

  /** Performs the handshake; closes the connection if that fails. */
  static async open(
    duplex: ByteDuplex,
    { host, target, headers }: UpgradeRequest,
    deps: WebSocketDependencies,
  ): Promise<WebSocketClient> {
    try {
      const key = btoa(String.fromCharCode(...deps.random(new Uint8Array(16))))
      const lines: [string, string][] = [
        ['Host', host],
        ['Upgrade', 'websocket'],
        ['Connection', 'Upgrade'],
        ['Sec-WebSocket-Key', key],
        ['Sec-WebSocket-Version', '13'],
        ...Object.entries(headers),
      ]
      await duplex.write(formatRequestHead('GET', target, lines))
      const { head, rest } = await readResponseHead(duplex)
      if (head.status !== 101 || head.headers.get('sec-websocket-accept') !== (await acceptOf(key)))
        throw new UpgradeRefused(head.status, await readRefusal(duplex, head, rest))
      const opened = new WebSocketClient(duplex, head.headers, deps)
      opened.#events.push(...opened.#decoder.push(rest))
      return opened
    } catch (error) {
      duplex.close()
      throw error
    }
  }

  /** How the peer closed it; undefined while it is open, or when the connection ended without a close frame. */
  get end(): WebSocketEnd | undefined {
    return this.#end
  }

  /** The next message; undefined when it is closed. Throws when the peer violates the protocol or the connection breaks. */
  async read(): Promise<WebSocketMessage | undefined> {
    try {
      for (;;) {
        const event = this.#events.shift()
        if (event === undefined) {
          const bytes = await this.#duplex.read()
          if (bytes === undefined) return this.#finish()
          this.#receivedMs = this.#deps.nowMs()
          this.#events.push(...this.#decoder.push(bytes))
        } else if (event.kind === 'ping') await this.#duplex.write(encodePong(event.bytes, this.#mask()))
        else if (event.kind === 'close') {
          this.#end = { code: event.code, reason: event.reason }
          this.close(event.code ?? 1000)
          return this.#finish()
        } else if (event.kind !== 'pong') return event
      }
    } catch (error) {
      this.#finish()
      throw error
    }
  }

  send(...messages: readonly (string | Uint8Array)[]): Promise<void> {
    const frames = messages.map((message) => encodeMessage(message, this.#mask()))
    const [only] = frames
    return this.#duplex.write(frames.length === 1 && only !== undefined ? only : concatBytes(frames))
  }

  /** Without a code that may be sent, the connection ends without a close frame, as a broken one does. */
  close(code = 1000, reason = ''): void {
    this.#stopPings()
    if (!isSendable(code)) return this.#duplex.close()
    const sent = this.#duplex.write(encodeClose(code, reason, this.#mask()))
    void sent.catch(() => undefined).then(() => this.#duplex.close())
  }

  #ping(): void {
    if (this.#deps.nowMs() - this.#receivedMs > SILENCE_MS) return this.#finish()
    // A broken connection is reported by the next read.
    void this.#duplex.write(encodePing(this.#mask())).catch(() => undefined)
  }

  #finish(): undefined {
    this.#stopPings()
    this.#duplex.close()
    return undefined
  }

  #mask(): Uint8Array {
    return this.#deps.random(new Uint8Array(4))
  }
}

/** Codes that RFC 6455 allows in a close frame. */
function isSendable(code: number): boolean {
  return (
    (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999)
  )
}
