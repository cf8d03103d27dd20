import { withTimeout } from '@sandwire/async'
import { SandwireError, shape } from '@sandwire/protocol'
import type { Log } from '../log.ts'
import type { Provider } from '../providers/provider.ts'
import type { Access } from './access.ts'
import { type Cut, dueInMs, isSeverDue, retryMs, type Selector, SEVER_AFTER_MS } from './cut-outbox.ts'
import { type Caller, controlItself, notUnderstood, type SandboxdClient } from './sandboxd-client.ts'
import type { SandboxStore } from './store.ts'
import type { ProxiedRequests } from '../workspace-proxy/requests.ts'

/** Until sandboxd has to confirm. */
const ATTEMPT_MS = 1_000
/** Until the maker of the sandbox has to. */
const SEVER_MS = 1_500
/** Waits up to this are spent in memory; for longer ones the object may sleep until its alarm. */
const LINGER_MS = 5_000

const confirmation = shape.record({ closed: shape.offset })

export interface CuttingDependencies {
  readonly store: SandboxStore
  readonly provider: Pick<Provider, 'sever'>
  readonly sandboxd: (sandbox: string) => SandboxdClient
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly mintRequestId: () => string
  /** Makes sure that the object's alarm rings by then, also after a crash. */
  readonly wakeBy: (atMs: number) => Promise<void>
  /** Requests that pass through control, which ends them itself. */
  readonly requests: Pick<ProxiedRequests, 'revoke'>
  readonly log: Log
}

/**
 * Ends connections that control does not carry. What allowed them is gone before; a row remembers to cut them, from the same
 * moment on, until sandboxd says that it has. When it does not say so in time, all connections are cut where the sandbox has
 * no say: whoever may come back resumes, and the others are refused here.
 */
export class Cutting {
  readonly #deps: CuttingDependencies
  /** Cuts that are being looked after, by their numbers. */
  readonly #tended = new Map<number, Promise<void>>()
  #severing: Promise<void> | undefined

  constructor(deps: CuttingDependencies) {
    this.#deps = deps
  }

  /**
   * Call it in the same turn as the change that it follows from: its row is written before this first waits. Resolves after
   * the first attempt, however that went.
   */
  async cut(selector: Selector): Promise<void> {
    const { certain, attempted } = this.#begin(selector)
    await certain
    await attempted
  }

  /** The same, but resolves as soon as nothing keeps it from being made: who has many to tell waits for none that hangs. */
  async #cutSoon(selector: Selector): Promise<void> {
    await this.#begin(selector).certain
  }

  #begin(selector: Selector): { readonly certain?: Promise<void>; readonly attempted?: Promise<void> } {
    const { store, requests, nowMs, wakeBy } = this.#deps
    requests.revoke(selector)
    const state = store.read()?.state
    // Nobody is in what does not run; who is on the way in is checked again at the door.
    if (state === undefined || state.is === 'stopped' || state.is === 'failed') return {}
    store.cuts.add(selector, state.is === 'running' ? state.epoch : null, nowMs())
    const attempted = this.#tendAll()
    return { certain: wakeBy(nowMs() + ATTEMPT_MS), attempted }
  }

  /** A sign-in has ended: what hangs on it ends here too. */
  endLogin(login: string, endedMs: number): Promise<void> {
    const { store, nowMs } = this.#deps
    if (store.read() === undefined) return Promise.resolve()
    store.cuts.endLogin(login, endedMs, nowMs())
    store.sharing.removeTicketsOf(login)
    return this.#cutSoon({ login })
  }

  /** What hangs on a sign-in ends here, though the sign-in does not. */
  cutLogin(login: string): Promise<void> {
    this.#deps.store.sharing.removeTicketsOf(login)
    return this.#cutSoon({ login })
  }

  /** An account is gone: what it was given is too. */
  async leave(account: string): Promise<void> {
    const { store } = this.#deps
    for (const { id } of store.sharing.grantsOf(account)) store.sharing.removeGrant(id)
    store.sharing.removeTicketsOfAccount(account)
    await this.#cutSoon({ identity: account })
  }

  /** Nobody may be here any more: what was given is taken back, and the owner is cut off too. */
  async cutAll(owner: string): Promise<void> {
    const { store, nowMs } = this.#deps
    const grants = store.sharing.liveGrants(nowMs())
    for (const { id } of grants) store.sharing.removeGrant(id)
    // The owner is not asked for who they are again where they show one.
    store.sharing.removeTickets()
    await Promise.all([
      this.#cutSoon({ identity: owner }),
      ...grants.map(({ id }) => this.#cutSoon({ grant: id })),
    ])
  }

  /** The alarm: goes on with what waits, and cuts off whose grants have expired. */
  async ring(): Promise<void> {
    const { store, nowMs } = this.#deps
    const expired = store.sharing.removeExpiredGrants(nowMs())
    const cuts = expired.map((grant) => this.cut({ grant }))
    await Promise.all([...cuts, this.#tendAll()])
  }

  /** When the alarm has to ring for this; undefined: never. */
  nextMs(): number | undefined {
    const { store, nowMs } = this.#deps
    const times = [store.cuts.nextMs(nowMs()), store.sharing.nextGrantExpiry()]
    const known = times.filter((time) => time !== undefined)
    return known.length === 0 ? undefined : Math.min(...known)
  }

  /**
   * Throws when a caller whose attach was opened is no longer allowed what its token said. It was under way while its right
   * was withdrawn, and so can have reached sandboxd behind the cut: it is cut again.
   */
  async checkAgain(caller: Caller, allow: () => Access): Promise<void> {
    const refusal = refusalNow(caller, allow)
    if (refusal === undefined) return
    const { identity, login, grant } = caller
    await this.cut({
      identity,
      ...(login === undefined ? {} : { login }),
      ...(grant === undefined ? {} : { grant }),
    })
    throw refusal
  }

  /** Looks after every cut that waits; resolves after one attempt of each. */
  async #tendAll(): Promise<void> {
    const waiting = this.#deps.store.cuts.all().filter(({ number }) => !this.#tended.has(number))
    const firsts = waiting.map(({ number }) => {
      const first = Promise.withResolvers<void>()
      const tending = this.#tend(number, first.resolve)
        .catch((error: unknown) => this.#deps.log.error('cut_fault', { cause: String(error) }))
        .finally(() => {
          this.#tended.delete(number)
          first.resolve()
        })
      this.#tended.set(number, tending)
      return first.promise
    })
    await Promise.all(firsts)
  }

  async #tend(number: number, onAttempt: () => void): Promise<void> {
    const { store, nowMs, sleep, wakeBy } = this.#deps
    for (;;) {
      const cut = store.cuts.find(number)
      if (cut === undefined) return
      if (await this.#step(cut)) return store.cuts.remove(number)
      onAttempt()
      const left = store.cuts.find(number)
      if (left === undefined) return
      const waitMs = dueInMs(left, nowMs())
      if (waitMs > LINGER_MS) return wakeBy(nowMs() + waitMs)
      await sleep(waitMs)
    }
  }

  /** Does what is due about a cut; true when nothing is left to do. */
  async #step(cut: Cut): Promise<boolean> {
    const { store, nowMs } = this.#deps
    const record = store.read()
    const state = record?.state
    if (record === undefined || state === undefined) return true
    if (state.is === 'stopped' || state.is === 'failed') return true
    if (state.is === 'running' && cut.epoch !== null && cut.epoch !== state.epoch) return true
    if (isSeverDue(cut, nowMs())) await this.#sever(record.id, cut)
    const isConfirmed = state.is === 'running' && (await this.#ask(record.id, state.address, cut))
    if (!isConfirmed) store.cuts.noteAttempt(cut, nowMs())
    return isConfirmed
  }

  /** Asks sandboxd; true when it says that it has closed whoever there was. */
  async #ask(
    sandbox: string,
    address: string,
    { tries, selector, sinceMs, isSevered }: Cut,
  ): Promise<boolean> {
    const { sandboxd, mintRequestId, log, nowMs } = this.#deps
    const requestId = mintRequestId()
    const untilSeverMs = sinceMs + SEVER_AFTER_MS - nowMs()
    const waitMs = isSevered || untilSeverMs <= 0 ? ATTEMPT_MS : Math.min(ATTEMPT_MS, untilSeverMs)
    try {
      const answer = await sandboxd(sandbox).ask(address, controlItself(requestId), {
        method: 'POST',
        path: '/attachments/close',
        body: selector,
        deadline: { ms: waitMs, late: notUnderstood },
      })
      if (confirmation.decode(answer) === undefined) throw notUnderstood()
      log.info('cut', { request_id: requestId, sandbox })
      return true
    } catch (caught) {
      const { code } = SandwireError.from(caught)
      log.warn('cut_unconfirmed', { request_id: requestId, sandbox, code, attempt: tries + 1 })
      return false
    }
  }

  /** Cuts every connection into the sandbox, once for all cuts that wait for it. */
  #sever(sandbox: string, cut: Cut): Promise<void> {
    this.#severing ??= this.#severOnce(sandbox, cut).finally(() => {
      this.#severing = undefined
    })
    return this.#severing
  }

  async #severOnce(sandbox: string, { tries }: Cut): Promise<void> {
    const { store, provider, mintRequestId, log, sleep } = this.#deps
    const requestId = mintRequestId()
    const newest = store.cuts.all().at(-1)?.number ?? 0
    const late = (): SandwireError => new SandwireError('provider_unavailable', 'Cannot sever: no answer')
    try {
      await withTimeout(provider.sever(sandbox, requestId), SEVER_MS, late)
      store.cuts.noteSevered(newest)
      log.warn('severed', { request_id: requestId, sandbox })
    } catch (caught) {
      const { code } = SandwireError.from(caught)
      log.error('sever_failed', { request_id: requestId, sandbox, code })
      await sleep(Math.min(ATTEMPT_MS, retryMs(Math.max(1, tries - 3))))
    }
  }
}

/** Why a caller may no longer do what its token says; undefined when it may. */
function refusalNow(caller: Caller, allow: () => Access): SandwireError | undefined {
  try {
    const { grant, authority } = allow()
    if (grant === caller.grant && authority === caller.authority) return undefined
  } catch (caught) {
    return SandwireError.from(caught)
  }
  return new SandwireError('revoked', 'Cannot attach: the right to be here was withdrawn')
}
