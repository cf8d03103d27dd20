import { eventually } from './eventually.ts'

/** A text message of the compat terminal socket. */
export type PtyMessage = Readonly<Record<string, unknown>> & { readonly type: string }

export interface PtyTarget {
  readonly port: number
  readonly headers: Readonly<Record<string, string>>
}

/** A client of the compat terminal socket (`/ws/pty`). */
export class PtyClient implements AsyncDisposable {
  readonly messages: PtyMessage[] = []
  close: { readonly code: number; readonly reason: string } | undefined
  /** Stays false when the upgrade is refused. */
  hasOpened = false
  readonly #socket: WebSocket

  constructor({ port, headers }: PtyTarget, path: string, protocols: readonly string[] = []) {
    // Bun's constructor accepts headers; the DOM types do not.
    const options: unknown = { headers, ...(protocols.length === 0 ? {} : { protocols }) }
    this.#socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, options as string[])
    this.#socket.addEventListener('error', () => {})
    this.#socket.addEventListener('open', () => (this.hasOpened = true))
    this.#socket.addEventListener('message', ({ data }: MessageEvent<string>) =>
      this.messages.push(JSON.parse(data) as PtyMessage),
    )
    this.#socket.addEventListener('close', ({ code, reason }) => (this.close = { code, reason }))
  }

  get protocol(): string {
    return this.#socket.protocol
  }

  /** The joined data of all messages of one type. */
  text(type: 'output' | 'history' | 'error'): string {
    return this.messages
      .filter((message) => message.type === type)
      .map(({ data }) => String(data))
      .join('')
  }

  /** Waits for the first message of a type. */
  async first(type: string): Promise<PtyMessage> {
    return eventually(() => this.messages.find((message) => message.type === type), { what: type })
  }

  /** Waits for the session's id. */
  async name(): Promise<string> {
    return String((await this.first('session'))['session_id'])
  }

  async waitForOutput(text: string): Promise<void> {
    await eventually(() => this.text('output').includes(text), { what: `output "${text}"` })
  }

  async closed(): Promise<{ readonly code: number; readonly reason: string }> {
    return eventually(() => this.close, { what: 'the end of the connection' })
  }

  send(message: object | string): void {
    this.#socket.send(typeof message === 'string' ? message : JSON.stringify(message))
  }

  type(data: string): void {
    this.send({ type: 'input', data })
  }

  /** Closes the connection and waits for its close event. */
  async disconnect(): Promise<void> {
    this.#socket.close()
    await this.closed()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.disconnect()
  }
}
