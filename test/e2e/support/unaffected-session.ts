import { eventually } from '@sandwire/testing'
import { Attached } from './attached.ts'
import type { WireServer } from './wire-server.ts'

/** Bounds "never"; a machine under attack answers later than at once. */
const ECHO_MS = 30_000

/** A session that has nothing to do with a test and must not notice it: attached once, by the client library. */
export class UnaffectedSession implements AsyncDisposable {
  readonly #client: Attached
  #sent = ''

  private constructor(client: Attached) {
    this.#client = client
  }

  static async open(server: WireServer): Promise<UnaffectedSession> {
    const client = new Attached(server, { cmd: 'cat', mode: 'pipe', keepSeconds: 60 })
    const neighbor = new UnaffectedSession(await client.isAttached())
    await neighbor.check()
    return neighbor
  }

  /** Times its connection was lost, which is nobody's right. */
  get reconnections(): number {
    return this.#client.reconnections
  }

  /** Sends a line through its process and waits for all it ever sent, and nothing else, to be back. */
  async check(): Promise<void> {
    const line = `line ${this.#sent.length}\n`
    this.#sent += line
    await this.#client.send(line)
    const isBack = (): boolean => this.#client.stdout.length >= this.#sent.length
    await eventually(isBack, { what: 'the echo', timeoutMs: ECHO_MS })
    if (this.#client.text !== this.#sent) throw new Error(`The unaffected session got "${this.#client.text}"`)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#client[Symbol.asyncDispose]()
  }
}
