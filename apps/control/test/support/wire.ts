import { encode, type Hello, PROTOCOL_VERSION } from '@sandwire/protocol'
import { eventually } from '@sandwire/testing'
import type { RunningControl } from './control.ts'

/** A text message of the server. */
export type Message = Readonly<Record<string, unknown>> & { readonly type: string }

/** Mints the secret of an attachment. */
export function mintHex(): string {
  return crypto.getRandomValues(new Uint8Array(16)).toHex()
}

/** A low-level connection, for frames that the client library never sends. */
export class Wire implements AsyncDisposable {
  readonly messages: Message[] = []
  /** Output of the process, both streams. */
  text = ''
  close: { readonly code: number; readonly reason: string } | undefined
  readonly #socket: WebSocket
  readonly #opened = Promise.withResolvers<void>()
  readonly #closed = Promise.withResolvers<void>()

  constructor(control: RunningControl, path: string, bearer: string) {
    // Bun's constructor accepts headers, which the DOM types do not declare.
    const options: unknown = {
      headers: { authorization: `Bearer ${bearer}`, host: `localhost:${control.port}` },
      protocols: ['sandwire.v1'],
    }
    this.#socket = new WebSocket(`ws://127.0.0.1:${control.port}${path}`, options as string[])
    this.#socket.binaryType = 'arraybuffer'
    this.#socket.addEventListener('open', () => this.#opened.resolve())
    this.#socket.addEventListener('error', () => this.#opened.resolve())
    this.#socket.addEventListener('message', (event: MessageEvent<string | ArrayBuffer>) => {
      if (typeof event.data === 'string') this.messages.push(JSON.parse(event.data) as Message)
      // The first byte names the stream.
      else this.text += new TextDecoder().decode(event.data.slice(1))
    })
    this.#socket.addEventListener('close', ({ code, reason }) => {
      this.close = { code, reason }
      this.#opened.resolve()
      this.#closed.resolve()
    })
  }

  /** Sends hello with defaults. */
  async hello(hello: Partial<Hello> = {}): Promise<void> {
    await this.send(helloText(hello))
  }

  async send(message: object | string | Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#opened.promise
    const isRaw = typeof message === 'string' || message instanceof Uint8Array
    if (this.#socket.readyState === WebSocket.OPEN)
      this.#socket.send(isRaw ? message : JSON.stringify(message))
  }

  of(type: string): readonly Message[] {
    return this.messages.filter((message) => message.type === type)
  }

  /** The first message of this type. */
  next(type: string): Promise<Message> {
    return eventually(() => this.of(type)[0], { what: `"${type}"` })
  }

  async waitFor(text: string): Promise<void> {
    await eventually(() => this.text.includes(text), { what: JSON.stringify(text) })
  }

  /** The code of the error that the connection ended with. */
  async refusal(): Promise<string> {
    await this.#closed.promise
    const code = this.of('error').at(-1)?.['code']
    return typeof code === 'string' ? code : `closed with ${String(this.close?.code)}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close()
    await this.#closed.promise
  }
}

/** An encoded hello with defaults. */
export function helloText(hello: Partial<Hello> = {}): string {
  const usual = { resuming: false, received: 0, window: 65_536, cols: 80, rows: 24 }
  return encode({ type: 'hello', version: PROTOCOL_VERSION, identity: mintHex(), ...usual, ...hello })
}
