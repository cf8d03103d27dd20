/** Time in a frame for what has arrived; the rest waits for the next frame, so that the page stays responsive. */
const FRAME_MS = 8
/** In a page that is not shown, there are no frames. */
const HIDDEN_MS = 250
/** From then on everything is taken at once: nothing is lost, and the queue is bounded. */
const MAX_WAITING = 20_000

export interface FrameQueueOptions<T> {
  readonly take: (item: T) => void
  /** Called once per frame, after items were taken. */
  readonly draw: () => void
}

/** Takes what arrives faster than it can be drawn, and draws once per frame. */
export class FrameQueue<T> {
  readonly #options: FrameQueueOptions<T>
  #waiting: T[] = []
  #cancel: (() => void) | undefined

  constructor(options: FrameQueueOptions<T>) {
    this.#options = options
  }

  push(item: T): void {
    this.#waiting.push(item)
    if (this.#waiting.length >= MAX_WAITING) return this.#run(Number.POSITIVE_INFINITY)
    this.#schedule()
  }

  /** Drops what was not taken. */
  stop(): void {
    this.#waiting = []
    this.#cancel?.()
    this.#cancel = undefined
  }

  #schedule(): void {
    if (this.#cancel !== undefined) return
    if (document.hidden) {
      const timer = setTimeout(() => this.#run(FRAME_MS), HIDDEN_MS)
      this.#cancel = () => clearTimeout(timer)
    } else {
      const frame = requestAnimationFrame(() => this.#run(FRAME_MS))
      this.#cancel = () => cancelAnimationFrame(frame)
    }
  }

  #run(budgetMs: number): void {
    this.#cancel?.()
    this.#cancel = undefined
    const endMs = performance.now() + budgetMs
    let at = 0
    while (at < this.#waiting.length && performance.now() < endMs) {
      const item = this.#waiting[at]
      at += 1
      if (item !== undefined) this.#options.take(item)
    }
    this.#waiting = this.#waiting.slice(at)
    this.#options.draw()
    if (this.#waiting.length > 0) this.#schedule()
  }
}
