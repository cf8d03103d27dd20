import { KeyedSerializer } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'

/** Bytes of manifests that control unpacks and parses for one account; 2 MiB take about a twentieth of a second. */
const BYTES_PER_SECOND = 2 * 1024 * 1024
/** What an account may use at once. */
const BURST_BYTES = 8 * 1024 * 1024
/** Accounts that are counted; the least recently seen is dropped first. */
const MAX_ACCOUNTS = 1_000

/** Work of control that reads versions: called with every amount of bytes that it takes. */
export type Charge = (bytes: number) => void

/**
 * Limits the reading of versions per account. How much a version takes is known only when it was read, so that a large one is
 * read and its account waits afterwards. An account reads one at a time.
 */
export class ReadBudget {
  readonly #nowMs: () => number
  readonly #serializer = new KeyedSerializer()
  /** When what each account used is paid for. */
  readonly #paidMs = new Map<string, number>()

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Runs work for an account; throws `rate_limited` while it has used too much. */
  run<T>(account: string, work: (charge: Charge) => Promise<T>): Promise<T> {
    return this.#serializer.run(account, async () => {
      const burstMs = (BURST_BYTES / BYTES_PER_SECOND) * 1000
      const retryAfterMs = (this.#paidMs.get(account) ?? 0) - burstMs - this.#nowMs()
      if (retryAfterMs > 0)
        throw new SandwireError('rate_limited', 'Too many requests for versions', { retryAfterMs })
      return work((bytes) => this.#charge(account, bytes))
    })
  }

  #charge(account: string, bytes: number): void {
    const fromMs = Math.max(this.#paidMs.get(account) ?? 0, this.#nowMs())
    this.#paidMs.delete(account)
    this.#paidMs.set(account, fromMs + (bytes / BYTES_PER_SECOND) * 1000)
    const [oldest] = this.#paidMs.keys()
    if (this.#paidMs.size > MAX_ACCOUNTS && oldest !== undefined) this.#paidMs.delete(oldest)
  }
}
