import type { GrantSource } from '../account/store.ts'
import type { Log } from '../log.ts'
import { OutboxDelivery } from '../outbox/delivery.ts'
import type { OutboxPolicy } from '../outbox/policy.ts'
import { SandwireError } from '@sandwire/protocol'
import type { HeldGrant } from './grants.ts'
import type { SandboxStore } from './store.ts'

/** Until the alarm takes over from an object that died, and between two attempts at least. */
const MIN_PAUSE_MS = 1_000
/** Accounts that are notified at a time. */
const MAX_CONCURRENT = 8

/** Removals from the indexes of accounts, by grant. Never given up: a guest signs in for as long as its index has a grant. */
export const HOLDER_OUTBOX: OutboxPolicy = {
  queue: 'holder',
  order: 'none',
  batchSize: 1,
  initialDelayMs: 0,
  firstRetryMs: 500,
  maxRetryMs: 60_000,
  maxPending: 1_000,
  overflow: 'dead_letter_oldest',
  onDuplicate: 'keep',
}

export interface HolderIndexDependencies {
  readonly store: Pick<SandboxStore, 'holderOutbox' | 'sharing'>
  /** Throws `too_many_grants` at the account's limit. */
  readonly add: (account: string, held: HeldGrant, source: GrantSource) => Promise<void>
  readonly remove: (account: string, grant: string) => Promise<void>
  /** Sets the object's alarm for this time or sooner; it survives a crash. */
  readonly wakeBy: (atMs: number) => Promise<void>
  readonly nowMs: () => number
  readonly log: Log
}

/**
 * The accounts' indexes of the grants that they hold on this sandbox. A grant is added before it is stored here, so that no account
 * holds a grant that is missing from its index, and its removal is queued together with the grant's own.
 */
export class HolderIndex {
  readonly #deps: HolderIndexDependencies
  readonly #delivery: OutboxDelivery

  constructor(deps: HolderIndexDependencies) {
    this.#deps = deps
    const { store, remove, nowMs, log } = deps
    this.#delivery = new OutboxDelivery({
      outbox: store.holderOutbox,
      send: async ([{ destination, key }]) => {
        // A share link that could not be redeemed at first may have been since.
        if (store.sharing.grant(key)?.holder?.account !== destination) await remove(destination, key)
      },
      onFailure: (error, { attempts }) =>
        log.warn('holder_delayed', { code: SandwireError.from(error).code, attempt: attempts + 1 }),
      wakeBy: (atMs) => deps.wakeBy(Math.max(atMs, nowMs() + MIN_PAUSE_MS)),
      nowMs,
      maxConcurrent: MAX_CONCURRENT,
    })
  }

  add(account: string, held: HeldGrant, source: GrantSource): Promise<void> {
    return this.#deps.add(account, held, source)
  }

  /** Queues the removal of a grant that was added but not stored. */
  remove(account: string, grant: string): Promise<void> {
    const { store, nowMs } = this.#deps
    store.holderOutbox.enqueue({ destination: account, key: grant, body: '' }, nowMs())
    return this.deliver()
  }

  /** Sends what is due. Failures are retried by the alarm. */
  async deliver(): Promise<void> {
    const { store, wakeBy, nowMs } = this.#deps
    if (store.holderOutbox.isEmpty) return
    // Set first: the object may die while it waits for an account.
    await wakeBy(nowMs() + MIN_PAUSE_MS)
    await this.#delivery.deliver()
  }

  /** Removes all grants of a sandbox that is being destroyed; rejects when an account has not confirmed it. */
  async removeAll(): Promise<void> {
    const { store, nowMs } = this.#deps
    for (const { id } of store.sharing.liveGrants(nowMs())) store.sharing.removeGrant(id, nowMs())
    const [error] = await this.#delivery.deliver({ force: true })
    if (error !== undefined) throw SandwireError.from(error)
  }

  /** When the alarm must fire for this; undefined: never. */
  nextMs(): number | undefined {
    const { store, nowMs } = this.#deps
    return store.holderOutbox.nextMs(nowMs())
  }
}
