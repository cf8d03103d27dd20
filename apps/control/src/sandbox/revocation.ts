import { withTimeout } from '@sandwire/async'
import { SandwireError, schema } from '@sandwire/protocol'
import type { Log } from '../log.ts'
import { OutboxDelivery } from '../outbox/delivery.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { isEscalationDue, type OutboxMessage, type OutboxPolicy, retryDelayMs } from '../outbox/policy.ts'
import type { Provider } from '../providers/provider.ts'
import type { ProxiedRequests } from '../workspace-proxy/requests.ts'
import type { Access } from './access.ts'
import { type Caller, controlItself, invalidResponse, type SandboxdClient } from './sandboxd-client.ts'
import type { SandboxStore } from './store.ts'

/** Until sandboxd must confirm that it closed the connections. */
const CONFIRM_MS = 1_000
/** Until the provider must have closed all connections. */
const DISCONNECT_ALL_MS = 1_500
/** Delays up to this are slept in memory; for longer ones the object may hibernate until its alarm. */
const MAX_SLEEP_MS = 5_000
/** After this time without confirmation the provider closes all connections, without sandboxd. */
const DISCONNECT_ALL_AFTER_MS = 3_000

/**
 * Requests to sandboxd to close connections. They are unordered: one that fails must not delay another. When too many are
 * pending, the oldest are dropped whose connections the provider has closed.
 */
export const DISCONNECT_OUTBOX: OutboxPolicy = {
  queue: 'disconnect',
  order: 'none',
  batchSize: 1,
  initialDelayMs: 0,
  firstRetryMs: 250,
  maxRetryMs: 30_000,
  maxPending: 256,
  overflow: 'drop_escalated',
  onDuplicate: 'restart',
  escalateAfter: { ms: DISCONNECT_ALL_AFTER_MS, attempts: 5 },
}

const confirmation = schema.record({ closed: schema.nonNegativeInteger })

/** Selects the connections that match every given field. */
export interface Selector {
  readonly identity?: string
  readonly session?: string
  readonly grant?: string
  readonly login?: string
  /** Also ends the sessions that the grant authorized to start. */
  readonly endSessions?: true
}

/** Body of a message in the disconnect outbox. Its key is the selector, so that a repeated request replaces the pending one. */
interface Disconnect {
  /** Start of the sandbox whose connections are meant; null: whichever runs. */
  readonly epoch: string | null
}

/** What ended in an account, as it reports to the sandboxes that it owns or holds grants of. */
export type RevocationEvent =
  | { readonly type: 'sign_in_ended'; readonly login: string; readonly endedMs: number }
  /** Connections of a sign-in are closed, though it stays valid. */
  | { readonly type: 'disconnect_sign_in'; readonly login: string }
  /** The account was deleted and held a grant on the sandbox. */
  | { readonly type: 'holder_deleted'; readonly account: string }
  /** The account was deleted and owned the sandbox. */
  | { readonly type: 'owner_deleted'; readonly account: string }

export interface RevocationDependencies {
  readonly store: SandboxStore
  readonly provider: Pick<Provider, 'disconnectAll' | 'execSessions'>
  readonly sandboxd: (sandbox: string) => SandboxdClient
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly mintRequestId: () => string
  /** Sets the object's alarm for this time or sooner; it survives a crash. */
  readonly wakeBy: (atMs: number) => Promise<void>
  /** Requests that control carries and aborts itself. */
  readonly requests: Pick<ProxiedRequests, 'revoke'>
  readonly log: Log
}

/**
 * Closes connections whose authorization ended. Control does not carry them, so it sends a request to sandboxd, and stores
 * it in the turn in which the authorization is removed, until sandboxd confirms it. If sandboxd does not confirm in time,
 * the provider closes all connections into the sandbox: authorized clients reconnect, control refuses the others.
 */
export class Revocation {
  readonly #deps: RevocationDependencies
  readonly #delivery: OutboxDelivery
  #disconnectingAll: Promise<void> | undefined

  constructor(deps: RevocationDependencies) {
    this.#deps = deps
    this.#delivery = new OutboxDelivery({
      outbox: deps.store.disconnectOutbox,
      send: ([message]) => this.#send(message),
      wakeBy: deps.wakeBy,
      nowMs: deps.nowMs,
      sleepInMemory: { sleep: deps.sleep, maxSleepMs: MAX_SLEEP_MS },
    })
  }

  /**
   * Closes the selected connections. Call it in the turn in which their authorization is removed: the request is stored
   * before this first waits. Resolves after the first attempt, whether or not that succeeded.
   */
  async disconnect(selector: Selector): Promise<void> {
    const { stored, attempted } = this.#begin(selector)
    await stored
    await attempted
  }

  /** The same, but resolves as soon as the alarm is set: a caller with many sandboxes waits for none that hangs. */
  async #disconnectSoon(selector: Selector): Promise<void> {
    await this.#begin(selector).stored
  }

  #begin(selector: Selector): { readonly stored?: Promise<void>; readonly attempted?: Promise<unknown> } {
    const { store, provider, requests, nowMs, wakeBy } = this.#deps
    requests.revoke(selector)
    provider.execSessions?.disconnect(selector)
    const state = store.read()?.state
    // A sandbox that is not running has no connections; an attach in progress is rechecked by `recheckAttach`.
    if (state === undefined || state.kind === 'stopped' || state.kind === 'failed') return {}
    const { identity, session, grant, login, endSessions } = selector
    const key = JSON.stringify({ identity, session, grant, login, endSessions })
    const body: Disconnect = { epoch: state.kind === 'running' ? state.epoch : null }
    this.#outbox.enqueue({ destination: 'sandboxd', key, body: JSON.stringify(body) }, nowMs())
    const attempted = this.#delivery.deliver()
    return { stored: wakeBy(nowMs() + CONFIRM_MS), attempted }
  }

  /** Applies what ended in an account. Resolves as soon as the changes are stored and the alarm is set. */
  handle(event: RevocationEvent): Promise<void> {
    switch (event.type) {
      case 'sign_in_ended':
        return this.#endSignIn(event.login, event.endedMs)
      case 'disconnect_sign_in':
        return this.#disconnectSignIn(event.login)
      case 'holder_deleted':
        return this.#removeHolder(event.account)
      case 'owner_deleted':
        return this.#revokeAll(event.account)
    }
  }

  /** Refuses the credentials of a sign-in from now on, and closes its connections. */
  #endSignIn(login: string, endedMs: number): Promise<void> {
    const { store, nowMs } = this.#deps
    if (store.read() === undefined) return Promise.resolve()
    store.endedLogins.add(login, endedMs, nowMs())
    return this.#disconnectSignIn(login)
  }

  #disconnectSignIn(login: string): Promise<void> {
    this.#deps.store.sharing.removeTicketsOfLogin(login)
    return this.#disconnectSoon({ login })
  }

  async #removeHolder(account: string): Promise<void> {
    const { store, nowMs } = this.#deps
    for (const { id } of store.sharing.grantsOf(account)) store.sharing.removeGrant(id, nowMs())
    store.sharing.removeTicketsOfAccount(account)
    await this.#disconnectSoon({ identity: account })
  }

  /** Revokes every grant and ticket, and disconnects the owner too. */
  async #revokeAll(owner: string): Promise<void> {
    const { store, nowMs } = this.#deps
    if (store.read()?.owner !== owner) return
    const grants = store.sharing.liveGrants(nowMs())
    for (const { id } of grants) store.sharing.removeGrant(id, nowMs())
    // A ticket would let the owner in without another check of the account.
    store.sharing.removeTickets()
    await Promise.all([
      this.#disconnectSoon({ identity: owner }),
      ...grants.map(({ id }) => this.#disconnectSoon({ grant: id })),
    ])
  }

  /** Retries what is pending, and closes the connections of grants that have expired. */
  async onAlarm(): Promise<void> {
    const { store, nowMs } = this.#deps
    const expired = store.sharing.removeExpiredGrants(nowMs())
    const disconnects = expired.map((grant) => this.disconnect({ grant }))
    await Promise.all([...disconnects, this.#delivery.deliver()])
  }

  /** When the alarm must fire for this; undefined: never. */
  nextMs(): number | undefined {
    const { store, nowMs } = this.#deps
    const times = [this.#outbox.nextMs(nowMs()), store.sharing.nextGrantExpiry()]
    const known = times.filter((time) => time !== undefined)
    return known.length === 0 ? undefined : Math.min(...known)
  }

  /**
   * Throws when a caller lost its access while its attach was in progress. The attach may have reached sandboxd after the
   * request to close the caller's connections, so they are closed again.
   */
  async recheckAttach(caller: Caller, authorize: () => Access): Promise<void> {
    const refusal = findRefusal(caller, authorize)
    if (refusal === undefined) return
    const { identity, login, grant } = caller
    await this.disconnect({
      identity,
      ...(login === undefined ? {} : { login }),
      ...(grant === undefined ? {} : { grant }),
    })
    throw refusal
  }

  get #outbox(): Outbox {
    return this.#deps.store.disconnectOutbox
  }

  /** Resolves when the connections are closed, or belonged to an earlier start of the sandbox. */
  async #send(message: OutboxMessage): Promise<void> {
    const { store, nowMs } = this.#deps
    const { epoch } = JSON.parse(message.body) as Disconnect
    const selector = JSON.parse(message.key) as Selector
    const record = store.read()
    if (record === undefined) return
    const { id, state } = record
    if (state.kind === 'stopped' || state.kind === 'failed') return
    if (state.kind === 'running' && epoch !== null && epoch !== state.epoch) return
    if (isEscalationDue(message, this.#outbox.policy, nowMs())) await this.#disconnectAll(id, message)
    if (state.kind !== 'running') throw new SandwireError('sandbox_unreachable', 'The sandbox is not running')
    await this.#requestClose(id, state.address, selector, message)
  }

  async #requestClose(
    sandbox: string,
    address: string,
    selector: Selector,
    { attempts, queuedMs, isEscalated }: OutboxMessage,
  ): Promise<void> {
    const { sandboxd, mintRequestId, log, nowMs } = this.#deps
    const requestId = mintRequestId()
    const remainingMs = queuedMs + DISCONNECT_ALL_AFTER_MS - nowMs()
    const timeoutMs = isEscalated || remainingMs <= 0 ? CONFIRM_MS : Math.min(CONFIRM_MS, remainingMs)
    try {
      const response = await sandboxd(sandbox).request(address, controlItself(requestId), {
        method: 'POST',
        path: '/attachments/close',
        body: selector,
        deadline: { ms: timeoutMs, late: invalidResponse },
      })
      if (confirmation.decode(response) === undefined) throw invalidResponse()
      log.info('disconnected', { request_id: requestId, sandbox })
    } catch (caught) {
      const { code } = SandwireError.from(caught)
      log.warn('disconnect_unconfirmed', { request_id: requestId, sandbox, code, attempt: attempts + 1 })
      throw caught
    }
  }

  /** Has the provider close every connection into the sandbox, once for all pending requests. */
  #disconnectAll(sandbox: string, message: OutboxMessage): Promise<void> {
    this.#disconnectingAll ??= this.#disconnectAllOnce(sandbox, message).finally(() => {
      this.#disconnectingAll = undefined
    })
    return this.#disconnectingAll
  }

  async #disconnectAllOnce(sandbox: string, { attempts }: OutboxMessage): Promise<void> {
    const { provider, mintRequestId, log, sleep } = this.#deps
    const requestId = mintRequestId()
    const newest = this.#outbox.pending().at(-1)?.seq ?? 0
    const late = (): SandwireError =>
      new SandwireError('provider_unavailable', 'Cannot close connections: the provider does not respond')
    try {
      await withTimeout(provider.disconnectAll(sandbox, requestId), DISCONNECT_ALL_MS, late)
      this.#outbox.markEscalated(newest)
      log.warn('disconnected_all', { request_id: requestId, sandbox })
    } catch (caught) {
      const { code } = SandwireError.from(caught)
      log.error('disconnect_all_failed', { request_id: requestId, sandbox, code })
      await sleep(Math.min(CONFIRM_MS, retryDelayMs(Math.max(1, attempts - 3), this.#outbox.policy)))
    }
  }
}

/** Why a caller no longer has the rights of its token; undefined when it may. */
function findRefusal(caller: Caller, authorize: () => Access): SandwireError | undefined {
  try {
    const { grant, authority } = authorize()
    if (grant === caller.grant && authority === caller.authority) return undefined
  } catch (caught) {
    return SandwireError.from(caught)
  }
  return new SandwireError('revoked', 'Cannot attach: access to the sandbox was revoked')
}
