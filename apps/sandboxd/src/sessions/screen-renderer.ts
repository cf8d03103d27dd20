import type { ScreenReply, ScreenRequest } from './screen-protocol.ts'

/** A screen that takes longer than this is given up, so that nobody waits for ever. */
const RENDER_MS = 10_000

/** Renders terminal screens in a thread of its own, started when first needed. */
export class ScreenRenderer {
  readonly #createWorker: () => Worker
  #worker: Worker | undefined
  #minted = 0
  readonly #waiting = new Map<number, (reply: ScreenReply | undefined) => void>()

  constructor(createWorker: () => Worker) {
    this.#createWorker = createWorker
  }

  open(session: string, cols: number, rows: number): void {
    this.#post({ kind: 'open', session, cols, rows })
  }

  resize(session: string, cols: number, rows: number): void {
    this.#post({ kind: 'resize', session, cols, rows })
  }

  /** Takes the memory of the bytes, and resolves when they were parsed. */
  async feed(session: string, bytes: Uint8Array): Promise<void> {
    await this.#ask((id) => ({ kind: 'feed', session, id, bytes }))
  }

  /** The screen as bytes that draw it, or undefined when it could not be rendered. */
  async render(session: string): Promise<Uint8Array | undefined> {
    const timeout = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => timeout.resolve(undefined), RENDER_MS)
    const reply = await Promise.race([this.#ask((id) => ({ kind: 'render', session, id })), timeout.promise])
    clearTimeout(timer)
    return reply?.data
  }

  close(session: string): void {
    if (this.#worker !== undefined) this.#post({ kind: 'close', session })
  }

  #ask(request: (id: number) => ScreenRequest): Promise<ScreenReply | undefined> {
    this.#minted += 1
    const id = this.#minted
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.#post(request(id))
    })
  }

  #post(request: ScreenRequest): void {
    this.#worker ??= this.#start()
    this.#worker.postMessage(request, request.kind === 'feed' ? [request.bytes.buffer] : [])
  }

  #start(): Worker {
    const worker = this.#createWorker()
    worker.addEventListener('message', (event: MessageEvent<ScreenReply>) => {
      const resolve = this.#waiting.get(event.data.id)
      this.#waiting.delete(event.data.id)
      resolve?.(event.data)
    })
    // A renderer that cannot run leaves sessions without screens, not without output.
    worker.addEventListener('error', () => {
      this.#worker = undefined
      for (const resolve of this.#waiting.values()) resolve(undefined)
      this.#waiting.clear()
    })
    return worker
  }
}
