import { STREAM_STDERR, STREAM_STDOUT } from '@sandwire/protocol/plain'
import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import type * as Ws from 'ws'

/** Bytes of a refusal's body that the error keeps. */
const MAX_REFUSAL_BODY_BYTES = 64 * 1024

/** Whether output is kept, or only counted and hashed. */
export type OutputMode = 'bytes' | 'digest'

export interface PlainClientOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** Default `bytes`; `digest` keeps only length and hash, for streams larger than memory. */
  readonly output?: OutputMode
  /** Offers permessage-deflate; default false. */
  readonly compression?: boolean
}

export interface PlainClose {
  readonly code: number
  readonly reason: string
}

/** The upgrade got a response other than 101. */
export class UpgradeRefused extends Error {
  readonly status: number
  readonly body: string

  constructor(status: number, body: string) {
    super(`Cannot connect: the server responded with ${status} "${body}"`)
    this.status = status
    this.body = body
  }
}

/** One output stream of the process, as it was received. */
export class ReceivedStream {
  readonly #mode: OutputMode
  readonly #hash = createHash('sha256')
  #chunks: Uint8Array[] = []
  #length = 0

  constructor(mode: OutputMode) {
    this.#mode = mode
  }

  get length(): number {
    return this.#length
  }

  /** Hex digest of all bytes so far. */
  get sha256(): string {
    return this.#hash.copy().digest('hex')
  }

  /** All bytes so far; throws in `digest` mode. */
  get bytes(): Uint8Array {
    if (this.#mode === 'digest') throw new Error('Cannot return bytes: output is only hashed')
    this.#chunks = [Buffer.concat(this.#chunks)]
    return this.#chunks[0] ?? new Uint8Array(0)
  }

  /** All bytes so far as UTF-8; throws in `digest` mode. */
  get text(): string {
    return new TextDecoder().decode(this.bytes)
  }

  push(bytes: Uint8Array): void {
    this.#length += bytes.length
    this.#hash.update(bytes)
    if (this.#mode === 'bytes') this.#chunks.push(bytes)
  }
}

function isWs(module: unknown): module is typeof Ws {
  return typeof module === 'object' && module !== null && 'WebSocket' in module
}

/**
 * The npm `ws` package itself. Under Bun the name `ws` means Bun's own client, which would test Bun
 * against Bun; the file behind the package is the foreign implementation.
 */
async function loadWs(): Promise<typeof Ws> {
  const file = join(dirname(Bun.resolveSync('ws/package.json', import.meta.dir)), 'wrapper.mjs')
  const module: unknown = await import(file)
  if (!isWs(module)) throw new Error(`Cannot load ws: "${file}" has no WebSocket`)
  return module
}

function toBytes(data: Ws.RawData): Uint8Array {
  if (Array.isArray(data)) return Buffer.concat(data)
  return new Uint8Array(data)
}

/** A client of the plain dialect, built on `ws` without any code of Sandwire's client. */
export class PlainClient implements AsyncDisposable {
  readonly stdout: ReceivedStream
  readonly stderr: ReceivedStream
  /** Text messages of the server, parsed, in order. */
  readonly control: unknown[] = []
  /** Messages that break the dialect: an unknown stream, an empty binary message, text that is not JSON. */
  readonly violations: string[] = []
  /** Settles when the WebSocket is closed; 1006 when there was no close frame. */
  readonly closed: Promise<PlainClose>
  /** Bytes of both streams when `exit` arrived; no output may follow it. */
  outputAtExit: number | undefined
  readonly #socket: Ws.WebSocket

  constructor(socket: Ws.WebSocket, output: OutputMode) {
    this.#socket = socket
    this.stdout = new ReceivedStream(output)
    this.stderr = new ReceivedStream(output)
    const closed = Promise.withResolvers<PlainClose>()
    this.closed = closed.promise
    socket.on('message', (data, isBinary) => this.#receive(toBytes(data), isBinary))
    socket.on('close', (code, reason) => closed.resolve({ code, reason: reason.toString() }))
  }

  /** The subprotocol the server chose; empty for the plain dialect. */
  get subprotocol(): string {
    return this.#socket.protocol
  }

  /** The extensions the server agreed to. */
  get extensions(): string {
    return this.#socket.extensions
  }

  /** The first `exit` message, if it arrived. */
  get exit(): object | undefined {
    return this.messagesOf('exit')[0]
  }

  messagesOf(type: string): object[] {
    return this.control
      .filter((message) => typeof message === 'object' && message !== null)
      .filter((message) => 'type' in message && message.type === type)
  }

  /** Sends input; settles when `ws` has written it to the socket. */
  sendInput(bytes: Uint8Array | string): Promise<void> {
    return this.#send(Buffer.from(bytes))
  }

  sendControl(message: object): Promise<void> {
    return this.#send(JSON.stringify(message))
  }

  /** Sends a text message unchanged, for tests of invalid messages. */
  sendText(text: string): Promise<void> {
    return this.#send(text)
  }

  sendEof(): Promise<void> {
    return this.sendControl({ type: 'eof' })
  }

  /** Stops reading from the socket, as a stalled client does. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  async close(code = 1000, reason = ''): Promise<PlainClose> {
    this.#socket.close(code, reason)
    return this.closed
  }

  /** Drops the connection without a close frame. */
  terminate(): void {
    this.#socket.terminate()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.terminate()
  }

  #send(data: Uint8Array | string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.send(data, (error) => (error ? reject(error) : resolve()))
    })
  }

  #receive(data: Uint8Array, isBinary: boolean): void {
    if (isBinary) this.#receiveOutput(data)
    else this.#receiveControl(new TextDecoder().decode(data))
  }

  #receiveOutput(data: Uint8Array): void {
    if (data[0] === STREAM_STDOUT) this.stdout.push(data.subarray(1))
    else if (data[0] === STREAM_STDERR) this.stderr.push(data.subarray(1))
    else this.violations.push(`binary message of stream "${data[0]}"`)
  }

  #receiveControl(text: string): void {
    try {
      this.control.push(JSON.parse(text))
    } catch {
      // Not JSON: recorded, so that the test can check it.
      this.violations.push(`text message "${text.slice(0, 200)}"`)
    }
    if (this.exit !== undefined) this.outputAtExit ??= this.stdout.length + this.stderr.length
  }
}

/** Connects; rejects with `UpgradeRefused` when the server responds with anything but 101. */
export async function connectPlain(url: string, options: PlainClientOptions = {}): Promise<PlainClient> {
  const { headers = {}, output = 'bytes', compression = false } = options
  const { WebSocket } = await loadWs()
  const socket = new WebSocket(url, { headers, perMessageDeflate: compression })
  // The client is created before the connection opens, so that it receives the first message.
  const client = new PlainClient(socket, output)
  const { promise, resolve, reject } = Promise.withResolvers<PlainClient>()
  socket.on('open', () => resolve(client))
  socket.on('error', reject)
  socket.on('unexpected-response', (request, response) => {
    const body: Buffer[] = []
    const refuse = () => {
      request.destroy()
      reject(
        new UpgradeRefused(
          response.statusCode ?? 0,
          Buffer.concat(body).toString('utf8', 0, MAX_REFUSAL_BODY_BYTES),
        ),
      )
    }
    response.on('data', (chunk: Buffer) => body.push(chunk))
    response.on('end', refuse)
    response.on('error', refuse)
  })
  return promise
}
