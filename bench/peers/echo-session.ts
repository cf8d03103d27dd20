import { attach, type AttachHandle } from '@sandwire/client'
import type { RunningHost } from '../../test/e2e/support/control.ts'

/** Timeout of a round trip. */
const TIMEOUT_MS = 20_000

const KEY = new Uint8Array([0x78])

/** A session of `cat` that times round trips of one byte. */
export class EchoSession {
  readonly #handle: AttachHandle
  readonly #attached = Promise.withResolvers<void>()
  #returned = Promise.withResolvers<void>()

  constructor(host: RunningHost, sandbox: string) {
    this.#handle = attach({
      url: host.url,
      request: { sandbox, cmd: 'cat', mode: 'pipe' },
      credentials: async () => ({ headers: host.headers }),
      onOutput: () => this.#returned.resolve(),
    })
    this.#handle.exit.catch((error) => this.#returned.reject(error))
    this.#returned.promise.catch(() => {})
    this.#handle.status.subscribe((status) => {
      if (status.kind === 'attached') this.#attached.resolve()
      if (status.kind === 'failed') this.#attached.reject(status.error)
      if (status.kind === 'reconnecting') this.#returned.reject(new Error('Connection lost'))
    })
  }

  get attached(): Promise<void> {
    return this.#attached.promise
  }

  async trip(): Promise<number> {
    this.#returned = Promise.withResolvers<void>()
    const timer = setTimeout(() => this.#returned.reject(new Error('No echo')), TIMEOUT_MS)
    const startMs = performance.now()
    void this.#handle.write(KEY)
    await this.#returned.promise.finally(() => clearTimeout(timer))
    return performance.now() - startMs
  }

  /** Ends `cat` and checks its exit code. */
  async end(): Promise<void> {
    this.#handle.eof()
    const { code } = await this.#handle.exit
    if (code !== 0) throw new Error(`Got exit code ${code}, expected 0`)
  }
}
