import { SandwireError, TokenBucket } from '@sandwire/protocol'
import { AddressLimit, type AddressLimitSettings } from './address-limit.ts'
import { Buckets } from './buckets.ts'
import { addressOf } from './client-address.ts'

/** Requests of one identity: far above what people and tools do, far below what hurts. */
const PER_SECOND = 500
const BURST = 2_000
/** Requests without a good credential, all of them together. */
const STRANGERS_PER_SECOND = 50
const STRANGERS_BURST = 200
/** People without a credential who come for a link, from one network address; more than a class of them does. */
const GUESTS_PER_MINUTE = 300
/** Identities remembered; the oldest is forgotten first. */
const MAX_IDENTITIES = 1_000

function limited(retryAfterMs: number): SandwireError {
  return new SandwireError('rate_limited', 'Cannot take more requests now', { retryAfterMs })
}

/** Tokens remembered as good; the oldest is forgotten first. */
const MAX_GOOD = 1_000

/** How much each identity may ask for. Strangers have a budget of their own, so that they cannot use up anybody's. */
export class RequestBudget {
  readonly #identities = new Buckets({ perSecond: PER_SECOND, burst: BURST, max: MAX_IDENTITIES })
  readonly #addresses: AddressLimit
  readonly #signInAddresses: AddressLimit
  #strangers: TokenBucket | undefined
  #signIns: TokenBucket | undefined
  /** Hashes of tokens that were good when they were last looked at. */
  readonly #good = new Set<string>()
  /** Apart from strangers, who are many: a guest has been invited. Here everybody counts, whatever address they have. */
  readonly #guests = new AddressLimit({ perMinute: GUESTS_PER_MINUTE, exemptsLoopback: false })

  /** `strangers`: how much may come from one address without a good credential. */
  constructor(strangers: AddressLimitSettings) {
    this.#addresses = new AddressLimit(strangers)
    this.#signInAddresses = new AddressLimit(strangers)
  }

  /** Counts a request of an identity; returns why it is too many. */
  refusal(identity: string, nowMs: number): SandwireError | undefined {
    const isTaken = this.#identities.take(identity, nowMs)
    return isTaken ? undefined : limited(this.#identities.waitMs(identity, nowMs))
  }

  /** Counts a request without a good credential; returns why it is too many. One address cannot use up all there is. */
  strangerRefusal(request: Request, nowMs: number): SandwireError | undefined {
    const refusal = this.#addresses.refusal(addressOf(request), nowMs)
    if (refusal !== undefined) return refusal
    this.#strangers ??= new TokenBucket(STRANGERS_PER_SECOND, STRANGERS_BURST, nowMs)
    return this.#strangers.take(1, nowMs) ? undefined : limited(this.#strangers.waitMs(1, nowMs))
  }

  /** Why a token is not even looked at: its address sent too many that are not good, and this one was not good before. */
  checkRefusal(request: Request, hash: string, nowMs: number): SandwireError | undefined {
    return this.#good.has(hash) ? undefined : this.#addresses.outlook(addressOf(request), nowMs)
  }

  /** Notes that a token is good. */
  noteGood(hash: string): void {
    this.#good.delete(hash)
    this.#good.add(hash)
    const [oldest] = this.#good
    if (this.#good.size > MAX_GOOD && oldest !== undefined) this.#good.delete(oldest)
  }

  /** Counts a step of signing in; returns why it is too many. Apart from other strangers, who would keep everybody out. */
  signInRefusal(request: Request, nowMs: number): SandwireError | undefined {
    const refusal = this.#signInAddresses.refusal(addressOf(request), nowMs)
    if (refusal !== undefined) return refusal
    this.#signIns ??= new TokenBucket(STRANGERS_PER_SECOND, STRANGERS_BURST, nowMs)
    return this.#signIns.take(1, nowMs) ? undefined : limited(this.#signIns.waitMs(1, nowMs))
  }

  /** Counts somebody without a credential who comes for a link; returns why it is too many. */
  guestRefusal(request: Request, nowMs: number): SandwireError | undefined {
    return this.#guests.refusal(addressOf(request), nowMs)
  }
}
