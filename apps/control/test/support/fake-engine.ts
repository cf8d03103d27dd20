import type { ContainerEngine, ContainerStart } from '../../src/providers/container/container.ts'

/** A container engine whose container is only a state, and whose sandboxd responds to every request. */
export class FakeEngine implements ContainerEngine {
  running = false
  readonly starts: ContainerStart[] = []
  readonly signals: number[] = []
  readonly timeouts: number[] = []
  destroys = 0
  /** Polls that fail before sandboxd listens. */
  failingPolls = 0
  /** Exit code of a container that ends at the first poll; null: none is reported. */
  endsWith: number | null | undefined
  /** True if it ends on a signal. */
  endsOnSignal = true
  readonly requests: string[] = []
  #ending = Promise.withResolvers<void>()

  start(options: ContainerStart): void {
    if (this.running) throw new Error('It runs already')
    this.running = true
    this.starts.push(options)
    this.#ending = Promise.withResolvers<void>()
    this.#ending.promise.catch(() => undefined)
  }

  monitor(): Promise<void> {
    return this.#ending.promise
  }

  async destroy(): Promise<void> {
    this.destroys += 1
    this.end(137)
  }

  signal(number: number): void {
    this.signals.push(number)
    if (this.endsOnSignal) this.end(0)
  }

  getTcpPort(port: number) {
    return {
      fetch: async (url: string): Promise<Response> => {
        if (!this.running || port !== 8080) throw new Error('connection refused')
        if (this.failingPolls > 0) {
          this.failingPolls -= 1
          if (this.endsWith !== undefined) this.#endSoon(this.endsWith)
          throw new Error('connection refused')
        }
        this.requests.push(url)
        return new Response('')
      },
    }
  }

  async setInactivityTimeout(durationMs: number): Promise<void> {
    this.timeouts.push(durationMs)
  }

  /** As in an engine, the container stops running before its exit is reported. */
  #endSoon(code: number | null): void {
    this.running = false
    const { reject } = this.#ending
    setTimeout(() => reject(Object.assign(new Error('It ended'), { exitCode: code })), 0)
  }

  /** The container ends by itself. */
  end(code: number): void {
    if (!this.running) return
    this.running = false
    if (code === 0) this.#ending.resolve()
    else this.#ending.reject(Object.assign(new Error('It ended'), { exitCode: code }))
  }
}
