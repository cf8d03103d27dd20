import { encode, type Hello, PROTOCOL_VERSION } from '@sandwire/protocol'
import { eventually } from '@sandwire/testing'
import type { WireServer } from './wire-server.ts'

/** A text message of the server. */
export type Message = Readonly<Record<string, unknown>> & { readonly type: string }

/** The fields of hello that tests set. */
export type WireHello = Partial<Hello> & Pick<Hello, 'identity'>

/** Mints an identity or a create id. */
export function mintHex(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex')
}

/**
 * A low-level `sandwire.v1` connection, for what the client library never does: invalid frames, two connections of one
 * identity, withheld acks.
 */
export class WireClient implements AsyncDisposable {
  readonly messages: Message[] = []
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  /** Payload of data frames by stream byte. */
  readonly output: Uint8Array[] = []
  outputBytes = 0
  close: { readonly code: number; readonly reason: string } | undefined
  readonly #socket: WebSocket
  readonly #opened = Promise.withResolvers<void>()

  constructor(server: WireServer, query: string, port: number = server.port) {
    // Bun accepts headers here; the DOM types do not.
    const options: unknown = {
      headers: { ...server.headers, host: `127.0.0.1:${server.port}` },
      protocols: ['sandwire.v1'],
    }
    const sandbox = server.sandbox === undefined ? '' : `sandbox=${server.sandbox}&`
    this.#socket = new WebSocket(`ws://127.0.0.1:${port}/attach?${sandbox}${query}`, options as string[])
    this.#socket.binaryType = 'arraybuffer'
    const closed = Promise.withResolvers<{ code: number; reason: string }>()
    this.closed = closed.promise
    this.#socket.addEventListener('open', () => this.#opened.resolve())
    this.#socket.addEventListener('error', () => {})
    this.#socket.addEventListener('message', (event: MessageEvent<string | ArrayBuffer>) =>
      this.#receive(event.data),
    )
    this.#socket.addEventListener('close', ({ code, reason }) => {
      this.close = { code, reason }
      closed.resolve({ code, reason })
      this.#opened.resolve()
    })
  }

  opened(): Promise<void> {
    return this.#opened.promise
  }

  async hello(hello: WireHello): Promise<void> {
    await this.#opened.promise
    const usual = { attempt: 1, resuming: false, received: 0, window: 65_536, cols: 80, rows: 24 }
    this.send(encode({ type: 'hello', version: PROTOCOL_VERSION, ...usual, ...hello }))
  }

  send(message: object | string | Uint8Array<ArrayBuffer>): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return
    const isRaw = typeof message === 'string' || message instanceof Uint8Array
    this.#socket.send(isRaw ? message : JSON.stringify(message))
  }

  of(type: string): Message[] {
    return this.messages.filter((message) => message.type === type)
  }

  /** The first message of this type; rejects when the connection closes without one. */
  async next(type: string): Promise<Message> {
    const isClosed = () => (this.close === undefined ? undefined : `closed with ${this.close.code}`)
    const found = await eventually(() => this.of(type)[0] ?? isClosed(), { what: `"${type}"` })
    if (typeof found === 'string')
      throw new Error(`Cannot wait for "${type}": ${found}, after ${JSON.stringify(this.messages)}`)
    return found
  }

  text(): string {
    return new TextDecoder().decode(Buffer.concat(this.output))
  }

  /** Closes without sending detach. */
  leave(): void {
    this.#socket.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close()
  }

  #receive(data: string | ArrayBuffer): void {
    if (typeof data === 'string') {
      this.messages.push(JSON.parse(data) as Message)
      return
    }
    const bytes = new Uint8Array(data)
    this.output.push(bytes.subarray(1))
    this.outputBytes += bytes.byteLength - 1
  }
}
