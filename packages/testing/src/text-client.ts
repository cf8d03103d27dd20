import { eventually } from './eventually.ts'
import type { PtyTarget } from './pty-client.ts'

/** A page that draws what `/terminal/:session` sends without a subprotocol, and sends what is typed. */
export class TextClient implements AsyncDisposable {
  /** Everything received, joined. */
  text = ''
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
    this.#socket.addEventListener('message', ({ data }: MessageEvent<string>) => {
      if (typeof data !== 'string') throw new Error('A text terminal got a binary message')
      this.text += data
    })
    this.#socket.addEventListener('close', ({ code, reason }) => (this.close = { code, reason }))
  }

  get protocol(): string {
    return this.#socket.protocol
  }

  async waitFor(text: string): Promise<void> {
    await eventually(() => this.text.includes(text), { what: `text "${text}"` })
  }

  async closed(): Promise<{ readonly code: number; readonly reason: string }> {
    return eventually(() => this.close, { what: 'the end of the connection' })
  }

  type(data: string | Uint8Array<ArrayBuffer>): void {
    this.#socket.send(data)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close()
    await this.closed()
  }
}
