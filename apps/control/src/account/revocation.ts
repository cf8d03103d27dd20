import { withTimeout } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import type { Log } from '../log.ts'
import { OutboxDelivery } from '../outbox/delivery.ts'
import { Outbox } from '../outbox/outbox.ts'
import type { OutboxPolicy } from '../outbox/policy.ts'
import type { RevocationEvent } from '../sandbox/revocation.ts'
import type { Exec } from '../sql.ts'

/** Until a sandbox's object must confirm that it has stored a revocation. */
const CONFIRM_MS = 5_000
/** Until a sandbox must be destroyed. */
const DESTROY_MS = 40_000
/** Shortest time between two attempts; also until the alarm takes over from an object that died. */
const MIN_PAUSE_MS = 1_000
/** Sandboxes destroyed at a time. */
const MAX_CONCURRENT_DESTROYS = 16

/** Reported to sandboxes in order and never given up; the bound is far above what sign-ins and sandboxes can add up to. */
const REVOCATION_OUTBOX: OutboxPolicy = {
  queue: 'revocation',
  order: 'fifo',
  batchSize: 1,
  initialDelayMs: 0,
  firstRetryMs: 500,
  maxRetryMs: 60_000,
  maxPending: 50_000,
  overflow: 'dead_letter_oldest',
  onDuplicate: 'restart',
}

/** A queue of its own: a sandbox that cannot be destroyed now must not delay revocations. */
const DESTROY_OUTBOX: OutboxPolicy = { ...REVOCATION_OUTBOX, queue: 'destroy' }

function keyOf(event: RevocationEvent): string {
  return `${event.type} ${'login' in event ? event.login : event.account}`
}

export interface RevocationDependencies {
  readonly exec: Exec
  /** Reports an event to a sandbox's object; resolves when that has stored it. */
  readonly report: (sandbox: string, event: RevocationEvent) => Promise<void>
  /** Destroys a sandbox of a deleted account. */
  readonly destroy: (sandbox: string, account: string) => Promise<void>
  /** Sets the object's alarm for this time or sooner. */
  readonly wakeBy: (atMs: number) => Promise<void>
  readonly nowMs: () => number
  readonly log: Log
}

function late(): SandwireError {
  return new SandwireError('sandbox_unreachable', 'The sandbox does not respond')
}

/** Reports what ended in an account to its sandboxes, until each has confirmed it. */
export class AccountRevocation {
  readonly #deps: RevocationDependencies
  readonly #revocations: Outbox
  readonly #destroys: Outbox
  readonly #delivery: OutboxDelivery
  readonly #destroyDelivery: OutboxDelivery

  constructor(deps: RevocationDependencies) {
    this.#deps = deps
    const { exec, report, destroy, nowMs, log } = deps
    const wakeBy = (atMs: number): Promise<void> => deps.wakeBy(Math.max(atMs, nowMs() + MIN_PAUSE_MS))
    this.#revocations = new Outbox(exec, REVOCATION_OUTBOX)
    this.#destroys = new Outbox(exec, DESTROY_OUTBOX)
    this.#delivery = new OutboxDelivery({
      outbox: this.#revocations,
      send: ([{ destination, body }]) =>
        withTimeout(report(destination, JSON.parse(body) as RevocationEvent), CONFIRM_MS, late),
      onFailure: (error, { destination, attempts }) => {
        const { code } = SandwireError.from(error)
        log.warn('revocation_delayed', { sandbox: destination, code, attempt: attempts + 1 })
      },
      wakeBy,
      nowMs,
    })
    this.#destroyDelivery = new OutboxDelivery({
      outbox: this.#destroys,
      send: ([{ destination, body }]) => withTimeout(destroy(destination, body), DESTROY_MS, late),
      onFailure: (error, { destination, attempts }) => {
        const { code } = SandwireError.from(error)
        log.warn('destroy_delayed', { sandbox: destination, code, attempt: attempts + 1 })
      },
      wakeBy,
      nowMs,
      maxConcurrent: MAX_CONCURRENT_DESTROYS,
    })
  }

  /** Stores an event for every sandbox, in the turn in which it happens. */
  enqueue(sandboxes: Iterable<string>, event: RevocationEvent): void {
    const { nowMs } = this.#deps
    for (const destination of new Set(sandboxes))
      this.#revocations.enqueue({ destination, key: keyOf(event), body: JSON.stringify(event) }, nowMs())
  }

  /** Stores that sandboxes of a deleted account must be destroyed, after their connections are closed. */
  enqueueDestroy(sandboxes: readonly string[], account: string): void {
    this.enqueue(sandboxes, { type: 'owner_deleted', account })
    for (const destination of sandboxes)
      this.#destroys.enqueue({ destination, key: 'destroy', body: account }, this.#deps.nowMs())
  }

  /** Reports what is due. All sandboxes close connections at once, before any of them is destroyed. */
  async deliver(): Promise<void> {
    if (this.#revocations.isEmpty && this.#destroys.isEmpty) return
    const { wakeBy, nowMs } = this.#deps
    // Set first: the object may die while it waits for a sandbox.
    await wakeBy(nowMs() + MIN_PAUSE_MS)
    await this.#delivery.deliver()
    await this.#destroyDelivery.deliver()
    const nextMs = this.#nextMs()
    if (nextMs !== undefined) await wakeBy(Math.max(nextMs, nowMs() + MIN_PAUSE_MS))
  }

  /** Sandboxes that have not confirmed everything yet. */
  get pendingSandboxes(): number {
    const pending = [...this.#revocations.heads(), ...this.#destroys.heads()]
    return new Set(pending.map(({ destination }) => destination)).size
  }

  #nextMs(): number | undefined {
    const nowMs = this.#deps.nowMs()
    const times = [this.#revocations.nextMs(nowMs), this.#destroys.nextMs(nowMs)]
    const known = times.filter((time) => time !== undefined)
    return known.length === 0 ? undefined : Math.min(...known)
  }
}
