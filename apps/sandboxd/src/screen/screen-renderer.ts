import { raceTimeout } from '@sandwire/async'
import type { DrawnScreen } from './screen-snapshot.ts'

/** Messages to the renderer thread. Requests with an id get a reply, unless their screen is closed first. */
export type ScreenRequest =
  | { readonly kind: 'open'; readonly screen: number; readonly cols: number; readonly rows: number }
  | { readonly kind: 'resize'; readonly screen: number; readonly cols: number; readonly rows: number }
  | { readonly kind: 'feed'; readonly screen: number; readonly id: number; readonly bytes: Uint8Array }
  | { readonly kind: 'render'; readonly screen: number; readonly id: number }
  | { readonly kind: 'read'; readonly screen: number; readonly id: number; readonly range: RowRange }
  | { readonly kind: 'close'; readonly screen: number }

/** Rows are numbered from 1 at the top of the screen; those of the scrollback are 0, -1, …, the latest first. */
export interface RowRange {
  readonly from: number
  /** Undefined: to the end of the screen. */
  readonly count: number | undefined
}

/** A screen as text. */
export interface ScreenText {
  readonly cols: number
  readonly rows: number
  readonly scrollback: number
  /** From 1. */
  readonly cursor: { readonly row: number; readonly column: number }
  /** Cursor keys send their application sequences. */
  readonly isApplicationCursor: boolean
  /** Number of the first line. */
  readonly from: number
  /** Without trailing blanks. */
  readonly lines: readonly string[]
}

export interface ScreenReply {
  readonly screen: number
  readonly id: number
  /** The rendered screen, for `render`. */
  readonly drawn?: DrawnScreen
  /** Its text, for `read`. */
  readonly text?: ScreenText
}

/** A screen that takes longer counts as not rendered. */
const RENDER_TIMEOUT_MS = 10_000

/** One screen in the renderer thread. After it is closed or lost, requests are dropped and pending ones settle. */
export class RemoteScreen {
  readonly #key: number
  readonly #post: (request: ScreenRequest) => void
  readonly #closed: () => void
  readonly #waiting = new Map<number, (reply: ScreenReply | undefined) => void>()
  #minted = 0
  #isClosed = false

  constructor(parts: { key: number; post: (request: ScreenRequest) => void; closed: () => void }) {
    this.#key = parts.key
    this.#post = parts.post
    this.#closed = parts.closed
  }

  /** It was closed, or its thread has failed. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  resize(cols: number, rows: number): void {
    if (!this.#isClosed) this.#post({ kind: 'resize', screen: this.#key, cols, rows })
  }

  /** Transfers the bytes' memory; resolves when they were parsed or never will be. */
  async feed(bytes: Uint8Array): Promise<void> {
    await this.#request((id) => ({ kind: 'feed', screen: this.#key, id, bytes }))
  }

  /** The bytes that draw the screen, or undefined when it could not be rendered. */
  async render(): Promise<DrawnScreen | undefined> {
    const requested = this.#request((id) => ({ kind: 'render', screen: this.#key, id }))
    const reply = await raceTimeout(requested, RENDER_TIMEOUT_MS, undefined)
    return reply?.drawn
  }

  /** Rows as text, or undefined when they could not be read. */
  async read(range: RowRange): Promise<ScreenText | undefined> {
    const requested = this.#request((id) => ({ kind: 'read', screen: this.#key, id, range }))
    const reply = await raceTimeout(requested, RENDER_TIMEOUT_MS, undefined)
    return reply?.text
  }

  close(): void {
    if (this.#isClosed) return
    this.#post({ kind: 'close', screen: this.#key })
    this.lost()
  }

  receive(reply: ScreenReply): void {
    const resolve = this.#waiting.get(reply.id)
    this.#waiting.delete(reply.id)
    resolve?.(reply)
  }

  /** Its thread has failed. */
  lost(): void {
    this.#isClosed = true
    this.#closed()
    for (const resolve of this.#waiting.values()) resolve(undefined)
    this.#waiting.clear()
  }

  #request(request: (id: number) => ScreenRequest): Promise<ScreenReply | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined)
    this.#minted += 1
    const id = this.#minted
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.#post(request(id))
    })
  }
}

/** Renders terminal screens in a worker thread, which starts with the first screen. */
export class ScreenRenderer {
  readonly #createWorker: () => Worker
  #worker: Worker | undefined
  #minted = 0
  readonly #screens = new Map<number, RemoteScreen>()

  constructor(createWorker: () => Worker) {
    this.#createWorker = createWorker
  }

  open(cols: number, rows: number): RemoteScreen {
    const worker = (this.#worker ??= this.#start())
    this.#minted += 1
    const key = this.#minted
    const post = (request: ScreenRequest): void =>
      worker.postMessage(request, request.kind === 'feed' ? [request.bytes.buffer] : [])
    const screen = new RemoteScreen({ key, post, closed: () => this.#screens.delete(key) })
    this.#screens.set(key, screen)
    post({ kind: 'open', screen: key, cols, rows })
    return screen
  }

  #start(): Worker {
    const worker = this.#createWorker()
    worker.addEventListener('message', ({ data }: MessageEvent<ScreenReply>) => {
      this.#screens.get(data.screen)?.receive(data)
    })
    // A failed renderer leaves sessions without screens, not without output.
    worker.addEventListener('error', () => {
      this.#worker = undefined
      for (const screen of Array.from(this.#screens.values())) screen.lost()
    })
    return worker
  }
}
