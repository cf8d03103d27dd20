import { raceTimeout } from '@sandwire/async'
import type { ScreenReply, ScreenRequest } from './screen-protocol.ts'

/** A screen that takes longer than this is given up, so that nobody waits for ever. */
const RENDER_MS = 10_000

/** One screen in the renderer's thread. Once it is over nothing more is asked of it, and nobody waits for it. */
export class RemoteScreen {
  readonly #key: number
  readonly #post: (request: ScreenRequest) => void
  readonly #closed: () => void
  readonly #waiting = new Map<number, (reply: ScreenReply | undefined) => void>()
  #minted = 0
  #isOver = false

  constructor(parts: { key: number; post: (request: ScreenRequest) => void; closed: () => void }) {
    this.#key = parts.key
    this.#post = parts.post
    this.#closed = parts.closed
  }

  /** It was closed, or its thread is gone. */
  get isOver(): boolean {
    return this.#isOver
  }

  resize(cols: number, rows: number): void {
    if (!this.#isOver) this.#post({ kind: 'resize', screen: this.#key, cols, rows })
  }

  /** Takes the memory of the bytes, and resolves when they were parsed or never will be. */
  async feed(bytes: Uint8Array): Promise<void> {
    await this.#ask((id) => ({ kind: 'feed', screen: this.#key, id, bytes }))
  }

  /** The screen as bytes that draw it, or undefined when it could not be rendered. */
  async render(): Promise<Uint8Array | undefined> {
    const asked = this.#ask((id) => ({ kind: 'render', screen: this.#key, id }))
    const reply = await raceTimeout(asked, RENDER_MS, undefined)
    return reply?.data
  }

  close(): void {
    if (this.#isOver) return
    this.#post({ kind: 'close', screen: this.#key })
    this.lost()
  }

  answered(reply: ScreenReply): void {
    const resolve = this.#waiting.get(reply.id)
    this.#waiting.delete(reply.id)
    resolve?.(reply)
  }

  /** Its thread is gone. */
  lost(): void {
    this.#isOver = true
    this.#closed()
    for (const resolve of this.#waiting.values()) resolve(undefined)
    this.#waiting.clear()
  }

  #ask(request: (id: number) => ScreenRequest): Promise<ScreenReply | undefined> {
    if (this.#isOver) return Promise.resolve(undefined)
    this.#minted += 1
    const id = this.#minted
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.#post(request(id))
    })
  }
}
