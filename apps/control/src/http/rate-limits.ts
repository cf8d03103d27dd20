import { SandwireError, TokenBucket } from '@sandwire/protocol'
import { type Outcome, unwrap } from '../outcome.ts'
import { Buckets } from './buckets.ts'
import { addressOf, isLoopback, networkOf } from './client-address.ts'

/** Networks that are counted; the least recently seen is dropped first. */
const MAX_NETWORKS = 10_000
/** Accounts that are counted; the least recently seen is dropped first. */
const MAX_ACCOUNTS = 1_000
const MINUTE_MS = 60_000

/** Cost of the requests of one account: far more than users and tools send, far less than the server can take. */
const ACCOUNT_PER_SECOND = 500
const ACCOUNT_BURST = 2_000
/** Requests without a valid credential, of each kind, all clients together. */
const UNAUTHENTICATED_PER_SECOND = 50
const UNAUTHENTICATED_BURST = 200
/** A page has dozens of files, which are cheap: the limits for pages and files are higher by this factor. */
const FILES_FACTOR = 10
/** Share links redeemed without a credential from one network; enough for a class of students. */
const GUESTS_PER_MINUTE = 300

/** A rate limiter of the platform that counts for all isolates. */
export interface RateLimit {
  limit(options: { key: string }): Promise<{ success: boolean }>
}

export interface AddressLimitSettings {
  /** 0: no limit. */
  readonly perMinute: number
  /** On one machine every client has a loopback address. */
  readonly exemptsLoopback: boolean
}

function tooManyFromAddress(retryAfterMs: number): SandwireError {
  const message = 'Too many requests from this network address'
  return new SandwireError('too_many_from_address', message, { retryAfterMs })
}

function rateLimited(retryAfterMs: number): SandwireError {
  return new SandwireError('rate_limited', 'Too many requests', { retryAfterMs })
}

/** Limits requests per network. Requests with an unknown address are counted as one network. */
export class AddressLimit {
  readonly #settings: AddressLimitSettings
  readonly #buckets: Buckets

  constructor(settings: AddressLimitSettings) {
    this.#settings = settings
    const { perMinute } = settings
    this.#buckets = new Buckets({ perSecond: perMinute / 60, burst: perMinute, max: MAX_NETWORKS })
  }

  /** Counts a request; returns the error if it exceeds the limit. */
  refusal(address: string, nowMs: number): SandwireError | undefined {
    if (this.#isExempt(address)) return undefined
    const network = networkOf(address)
    if (this.#buckets.take(network, nowMs)) return undefined
    return tooManyFromAddress(this.#buckets.waitMs(network, nowMs))
  }

  /** The error of the next request, if it would exceed the limit; counts nothing. */
  nextRefusal(address: string, nowMs: number): SandwireError | undefined {
    if (this.#isExempt(address)) return undefined
    const waitMs = this.#buckets.waitMs(networkOf(address), nowMs)
    return waitMs > 0 ? tooManyFromAddress(waitMs) : undefined
  }

  /** Like `refusal`, counted by the platform. */
  async refusalBy(platform: RateLimit, address: string): Promise<SandwireError | undefined> {
    if (this.#isExempt(address)) return undefined
    const { success } = await platform.limit({ key: networkOf(address) })
    return success ? undefined : tooManyFromAddress(MINUTE_MS)
  }

  #isExempt(address: string): boolean {
    const { perMinute, exemptsLoopback } = this.#settings
    return perMinute === 0 || (exemptsLoopback && isLoopback(address))
  }
}

export interface AttachLimitDependencies {
  readonly perAddress: AddressLimitSettings
  /** The platform's limiter; absent: this isolate counts. */
  readonly rateLimit: RateLimit | undefined
  /** Counts one attach of an account, from any address. */
  readonly takeOfAccount: (account: string) => Promise<Outcome<void>>
  readonly nowMs: () => number
}

/** Limits attaches per network and per account. */
export class AttachLimits {
  readonly #deps: AttachLimitDependencies
  readonly #addresses: AddressLimit

  constructor(deps: AttachLimitDependencies) {
    this.#deps = deps
    this.#addresses = new AddressLimit(deps.perAddress)
  }

  /**
   * Counts an attach; throws if it exceeds a limit. An attach that one limit refuses does not count for the other, so that
   * accounts behind one address do not use up each other's. The platform's limiter cannot be checked without counting.
   */
  async admit({ identity, address }: { readonly identity: string; readonly address: string }): Promise<void> {
    const { rateLimit, takeOfAccount, nowMs } = this.#deps
    const next = rateLimit === undefined ? this.#addresses.nextRefusal(address, nowMs()) : undefined
    if (next !== undefined) throw next
    unwrap(await takeOfAccount(identity))
    const refusal =
      rateLimit === undefined
        ? this.#addresses.refusal(address, nowMs())
        : await this.#addresses.refusalBy(rateLimit, address)
    if (refusal !== undefined) throw refusal
  }
}

/** Requests without a valid credential. Each kind has limits of its own, so that a flood of one does not stop the others. */
export type UnauthenticatedRequest =
  /** A route that needs a credential, without a valid one. */
  | 'refused'
  | 'sign-in'
  | 'health'
  /** Pages, their files, and other public routes. */
  | 'page'

const UNAUTHENTICATED_FACTORS: Readonly<Record<UnauthenticatedRequest, number>> = {
  refused: 1,
  'sign-in': 1,
  health: 1,
  page: FILES_FACTOR,
}

/** Limits one kind of requests per address, and for all addresses together. */
class UnauthenticatedLimit {
  readonly #addresses: AddressLimit
  readonly #factor: number
  #all: TokenBucket | undefined

  constructor({ perMinute, exemptsLoopback }: AddressLimitSettings, factor: number) {
    this.#addresses = new AddressLimit({ perMinute: perMinute * factor, exemptsLoopback })
    this.#factor = factor
  }

  refusal(request: Request, nowMs: number): SandwireError | undefined {
    const refusal = this.#addresses.refusal(addressOf(request), nowMs)
    if (refusal !== undefined) return refusal
    this.#all ??= new TokenBucket(
      UNAUTHENTICATED_PER_SECOND * this.#factor,
      UNAUTHENTICATED_BURST * this.#factor,
      nowMs,
    )
    return this.#all.take(1, nowMs) ? undefined : rateLimited(this.#all.waitMs(1, nowMs))
  }
}

/** Limits the cost of requests per account. Requests without a valid credential have separate limits, so that they cannot exhaust an account's. */
export class RequestBudget {
  readonly #accounts = new Buckets({ perSecond: ACCOUNT_PER_SECOND, burst: ACCOUNT_BURST, max: MAX_ACCOUNTS })
  readonly #unauthenticated: Readonly<Record<UnauthenticatedRequest, UnauthenticatedLimit>>
  /** Separate from other unauthenticated requests, because guests were invited. Exempts no address. */
  readonly #guests = new AddressLimit({ perMinute: GUESTS_PER_MINUTE, exemptsLoopback: false })

  /** `unauthenticated`: the limit per address for requests without a valid credential. */
  constructor(unauthenticated: AddressLimitSettings) {
    const limitOf = (kind: UnauthenticatedRequest) =>
      new UnauthenticatedLimit(unauthenticated, UNAUTHENTICATED_FACTORS[kind])
    this.#unauthenticated = {
      refused: limitOf('refused'),
      'sign-in': limitOf('sign-in'),
      health: limitOf('health'),
      page: limitOf('page'),
    }
  }

  /** Takes the cost of a request of an account; returns the error if it exceeds the limit. */
  refusal(account: string, cost: number, nowMs: number): SandwireError | undefined {
    const isTaken = this.#accounts.take(account, nowMs, cost)
    return isTaken ? undefined : rateLimited(this.#accounts.waitMs(account, nowMs, cost))
  }

  /** Counts a request without a valid credential; returns the error if it exceeds the limit. */
  unauthenticatedRefusal(
    kind: UnauthenticatedRequest,
    request: Request,
    nowMs: number,
  ): SandwireError | undefined {
    return this.#unauthenticated[kind].refusal(request, nowMs)
  }

  /** Counts a guest who redeems a share link; returns the error if it exceeds the limit. */
  guestRefusal(request: Request, nowMs: number): SandwireError | undefined {
    return this.#guests.refusal(addressOf(request), nowMs)
  }
}

/** Limits the cost of workspace requests per account. A whole minute's budget may be used at once. */
export class WorkspaceBudget {
  readonly #perMinute: number
  readonly #buckets: Buckets

  /** 0: no limit. */
  constructor(perMinute: number) {
    this.#perMinute = perMinute
    this.#buckets = new Buckets({ perSecond: perMinute / 60, burst: perMinute, max: MAX_ACCOUNTS })
  }

  /** Takes the cost of a request; throws `rate_limited` if the budget does not cover it. */
  take(account: string, cost: number, nowMs: number): void {
    if (this.#perMinute === 0 || cost === 0) return
    // A request that costs more than the whole budget is admitted when the budget is full.
    const taken = Math.min(cost, this.#perMinute)
    const retryAfterMs = this.#buckets.waitMs(account, nowMs, taken)
    if (retryAfterMs > 0)
      throw new SandwireError('rate_limited', 'Too many workspace requests', { retryAfterMs })
    this.#buckets.takeUpTo(account, taken, nowMs)
  }
}
