import { eventually } from '@sandwire/testing'
import { Attached } from './attached.ts'
import type { WireServer } from './wire-server.ts'

/** Generous, because the machine is under attack. */
const ECHO_MS = 60_000

/** A session of the client library that the attack under test must not affect. */
export class UnaffectedSession implements AsyncDisposable {
  readonly #client: Attached
  #sent = ''

  private constructor(client: Attached) {
    this.#client = client
  }

  static async open(server: WireServer): Promise<UnaffectedSession> {
    const client = new Attached(server, { cmd: 'cat', mode: 'pipe', keepSeconds: 60 })
    const session = new UnaffectedSession(await client.isAttached())
    await session.check()
    return session
  }

  /** Number of reconnects; expected to stay 0. */
  get reconnections(): number {
    return this.#client.reconnections
  }

  /** Sends a line and checks that exactly everything sent so far was echoed. */
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
