import { createHash } from 'node:crypto'
import { WAIT_TIMEOUT_MS } from './eventually.ts'
import { openRawTcp, type RawTcp, type TcpEnd } from './raw-tcp.ts'
import {
  decodeClosePayload,
  encodeFrame,
  type Frame,
  FrameParser,
  type FrameSpec,
  OPCODE,
} from './websocket-frame.ts'

/** The GUID of the accept key (RFC 6455 section 1.3). */
const ACCEPT_SALT = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** Fixed, so that handshakes are identical. */
const KEY = Buffer.from('sandwire raw key').toString('base64')

/** Size limit of the response's header section. */
const MAX_RESPONSE_HEAD_BYTES = 64 * 1024

/** Unread payload bytes at which reading pauses. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024

export interface RawWebSocketOptions {
  readonly port: number
  /** Default `/`. */
  readonly path?: string
  /** Sent in this order after the handshake's own headers; a name may repeat. */
  readonly headers?: Readonly<Record<string, string>> | readonly (readonly [string, string])[]
  readonly subprotocols?: readonly string[]
  /** The value of `Sec-WebSocket-Extensions`. */
  readonly extensions?: string
  /** For the whole handshake; default 60,000. */
  readonly timeoutMs?: number
}

/** The server's response to the upgrade. */
export interface UpgradeResponse {
  readonly status: number
  readonly headers: Headers
}

export type RawHandshake =
  | { readonly kind: 'open'; readonly socket: RawWebSocket }
  /** `body` is what arrived within the timeout, up to the content length. */
  | ({ readonly kind: 'refused'; readonly body: string } & UpgradeResponse)
  /** The connection ended before a response. */
  | { readonly kind: 'ended'; readonly how: TcpEnd }

/** How a WebSocket ended. */
export interface RawClose {
  /** How the TCP connection ended. */
  readonly how: TcpEnd
  /** The server's close frame, if it sent one; `code` is absent when its payload was empty. */
  readonly frame?: { readonly code?: number; readonly reason: string }
}

/** The text of the upgrade request, for tests that send it in pieces over `openRawTcp`. */
export function upgradeRequest({
  port,
  path = '/',
  headers = {},
  subprotocols,
  extensions,
}: RawWebSocketOptions): string {
  const extra: readonly (readonly [string, string])[] = Array.isArray(headers)
    ? headers
    : Object.entries(headers)
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${KEY}`,
    ...(subprotocols === undefined ? [] : [`Sec-WebSocket-Protocol: ${subprotocols.join(', ')}`]),
    ...(extensions === undefined ? [] : [`Sec-WebSocket-Extensions: ${extensions}`]),
    ...extra.map(([name, value]) => `${name}: ${value}`),
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}

function timeoutAfter(timeoutMs: number, what: string): { readonly promise: Promise<never> } & Disposable {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new Error(`Timed out after ${timeoutMs} ms waiting for ${what}`)),
    timeoutMs,
  )
  return { promise, [Symbol.dispose]: () => clearTimeout(timer) }
}

/** A WebSocket whose test controls every byte sent and receives every frame. */
export class RawWebSocket implements AsyncDisposable {
  readonly response: UpgradeResponse
  /** Resolves when the TCP connection ends; frames received before can still be read. */
  readonly closed: Promise<RawClose>
  readonly #tcp: RawTcp
  readonly #parser = new FrameParser()
  readonly #frames: Frame[] = []
  #unreadBytes = 0
  #closeFrame: RawClose['frame']
  #hasEnded = false
  /** Resolves when a frame arrives, a frame is read or the connection ends. */
  #changed = Promise.withResolvers<void>()

  /** `early` holds the bytes received after the response. */
  constructor(tcp: RawTcp, response: UpgradeResponse, early: Uint8Array) {
    this.#tcp = tcp
    this.response = response
    this.#receive(early)
    this.closed = this.#run()
  }

  /** Sends one frame, valid or not; resolves when the kernel has accepted it. */
  sendFrame(spec: FrameSpec): Promise<void> {
    return this.#tcp.write(encodeFrame(spec))
  }

  sendBytes(bytes: Uint8Array): Promise<void> {
    return this.#tcp.write(bytes)
  }

  /** The next frame of any kind, pings and closes included; rejects at the end and after the timeout. */
  async nextFrame(timeoutMs = WAIT_TIMEOUT_MS): Promise<Frame> {
    using timeout = timeoutAfter(timeoutMs, 'a frame')
    const frame = await this.#take(timeout.promise)
    if (frame === undefined) throw new Error('Cannot read a frame: connection ended')
    return frame
  }

  /** All frames from here to the end of the connection. */
  async *frames(): AsyncGenerator<Frame, void> {
    for (let frame = await this.#take(); frame !== undefined; frame = await this.#take()) yield frame
  }

  /** Stops reading from the kernel, as a stalled client does. */
  pause(): void {
    this.#tcp.pause()
  }

  resume(): void {
    this.#tcp.resume()
  }

  /** Closes the sending direction without a close frame. */
  endWriting(): void {
    this.#tcp.endWriting()
  }

  /** Aborts the connection (RST). */
  reset(): void {
    this.#tcp.reset()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#tcp.close()
  }

  /** Rejects with `limit`, without consuming a frame. */
  async #take(limit?: Promise<never>): Promise<Frame | undefined> {
    for (;;) {
      const frame = this.#frames.shift()
      if (frame !== undefined) {
        this.#unreadBytes -= frame.payload.length
        this.#wake()
        return frame
      }
      if (this.#hasEnded) return undefined
      await (limit === undefined ? this.#changed.promise : Promise.race([this.#changed.promise, limit]))
    }
  }

  async #run(): Promise<RawClose> {
    for (let bytes = await this.#tcp.read(); bytes !== undefined; bytes = await this.#tcp.read()) {
      this.#receive(bytes)
      while (this.#unreadBytes > MAX_UNREAD_BYTES) await this.#changed.promise
    }
    const how = await this.#tcp.ended
    this.#hasEnded = true
    this.#wake()
    return this.#closeFrame === undefined ? { how } : { how, frame: this.#closeFrame }
  }

  #receive(bytes: Uint8Array): void {
    for (const frame of this.#parser.push(bytes)) {
      this.#frames.push(frame)
      this.#unreadBytes += frame.payload.length
      if (frame.opcode === OPCODE.close) this.#closeFrame ??= decodeClosePayload(frame.payload)
    }
    this.#wake()
  }

  #wake(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers<void>()
  }
}

interface Head extends UpgradeResponse {
  readonly rest: Uint8Array
}

function parseHead(bytes: Buffer): Head | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const headers = new Headers()
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  return { status: Number(statusLine.split(' ')[1]), headers, rest: bytes.subarray(end + 4) }
}

async function readHead(tcp: RawTcp): Promise<Head | undefined> {
  let received = Buffer.alloc(0)
  for (let bytes = await tcp.read(); bytes !== undefined; bytes = await tcp.read()) {
    received = Buffer.concat([received, bytes])
    const head = parseHead(received)
    if (head !== undefined) return head
    if (received.length > MAX_RESPONSE_HEAD_BYTES)
      throw new Error('Cannot read the response: head is too long')
  }
  return undefined
}

async function readBody(tcp: RawTcp, { headers, rest }: Head): Promise<string> {
  const length = Number(headers.get('content-length') ?? Number.POSITIVE_INFINITY)
  let received = Buffer.from(rest)
  while (received.length < length) {
    const bytes = await tcp.read()
    if (bytes === undefined) break
    received = Buffer.concat([received, bytes])
  }
  return received.toString()
}

async function shakeHands(tcp: RawTcp, options: RawWebSocketOptions): Promise<RawHandshake> {
  await tcp.write(upgradeRequest(options))
  const head = await readHead(tcp)
  if (head === undefined) return { kind: 'ended', how: await tcp.ended }
  const { status, headers, rest } = head
  if (status !== 101) return { kind: 'refused', status, headers, body: await readBody(tcp, head) }
  const accept = createHash('sha1')
    .update(KEY + ACCEPT_SALT)
    .digest('base64')
  if (headers.get('sec-websocket-accept') !== accept)
    throw new Error('Cannot open a WebSocket: answer has a wrong accept key')
  return { kind: 'open', socket: new RawWebSocket(tcp, { status, headers }, rest) }
}

/** Does the handshake by hand. A refused upgrade is a result, not an error; rejects when the TCP connection is refused or on a timeout. */
export async function openRawWebSocket(options: RawWebSocketOptions): Promise<RawHandshake> {
  const { timeoutMs = WAIT_TIMEOUT_MS } = options
  const tcp = await openRawTcp(options)
  using timeout = timeoutAfter(timeoutMs, 'the upgrade response')
  try {
    const handshake = await Promise.race([shakeHands(tcp, options), timeout.promise])
    if (handshake.kind !== 'open') tcp.close()
    return handshake
  } catch (error) {
    tcp.reset()
    throw error
  }
}

/** Like {@link openRawWebSocket}, but throws when the upgrade is refused. */
export async function openRawWebSocketOrThrow(options: RawWebSocketOptions): Promise<RawWebSocket> {
  const handshake = await openRawWebSocket(options)
  switch (handshake.kind) {
    case 'open':
      return handshake.socket
    case 'refused':
      throw new Error(`Cannot open a WebSocket: server answered ${handshake.status} "${handshake.body}"`)
    case 'ended':
      throw new Error(`Cannot open a WebSocket: connection ended with "${handshake.how}"`)
  }
}
