import type { SandboxStatus, StartSpec } from '@sandwire/internal-api'
import { SandwireError, type StopReason } from '@sandwire/protocol'
import { signInEnded } from '../auth/identity.ts'
import type { Limits } from '../limits.ts'
import type { Log } from '../log.ts'
import type { Provider } from '../providers/provider.ts'
import { type Access, accessOf, type Need, requireAccess, standingOf } from './access.ts'
import type { SandboxCall } from './call.ts'
import { isIdle, sleepAfter } from './idle.ts'
import type { LateRefusals } from './late-refusals.ts'
import { noSuchSandbox } from './missing.ts'
import type { SandboxRecord, SandboxSettings, SandboxView } from './record.ts'
import { controlItself, notUnderstood, type SandboxdClient } from './sandboxd-client.ts'
import { decodeActivity, keepsAwake, lastMoveMs, type SessionFacts, withPin } from './session-view.ts'
import { type SandboxEvent, type SandboxState, step } from './state.ts'
import type { SandboxStore } from './store.ts'

/** Looks for which a running sandbox is wanted. */
const RENEWED_LOOKS = 3

/** A sandbox that a caller may use, and how. */
export interface Allowed {
  readonly record: SandboxRecord
  readonly access: Access
}

export type Running = Extract<SandboxState, { is: 'running' }>

/** Where the account hears how its sandboxes are. */
export interface SandboxIndex {
  /** `sessions` replaces those known of this sandbox. */
  report(owner: string, view: SandboxView, sessions?: readonly SessionFacts[]): Promise<void>
  remove(owner: string, sandbox: string): Promise<void>
  /** Whether the account has it under one of its names. */
  has(owner: string, sandbox: string): Promise<boolean>
}

export interface LifeDependencies {
  readonly store: SandboxStore
  readonly provider: Provider
  readonly index: SandboxIndex
  readonly sandboxd: (sandbox: string) => SandboxdClient
  /** Hears what sandboxd says of itself. */
  readonly refusals: Pick<LateRefusals, 'hear'>
  /** What sandboxes check our tokens with. */
  readonly publicKey: string
  readonly settings: {
    readonly sleepAfterMs: number
    readonly alarmMs: number
    readonly limits: Pick<Limits, 'sessionsPerSandbox' | 'outputBytesPerSecond'>
  }
  readonly nowMs: () => number
  readonly log: Log
  /** The object's one alarm. */
  readonly alarm: { set(atMs: number): Promise<void>; clear(): Promise<void> }
  /** Forgets everything that is stored. */
  readonly deleteAll: () => Promise<void>
}

/** Drives the state of one sandbox: performs what `step` asks for, one lifecycle change at a time. */
export class SandboxLife {
  readonly #deps: LifeDependencies
  #starting: Promise<void> | undefined
  /** End of the last lifecycle change; the next one waits for it. */
  #tail: Promise<unknown> = Promise.resolve()

  constructor(deps: LifeDependencies) {
    this.#deps = deps
  }

  /** The record and what the caller may do, when that is enough; what is not theirs does not exist for them. */
  allow(
    call: Pick<SandboxCall, 'identity' | 'login' | 'token' | 'issuedMs'>,
    need: Need,
    session?: string,
  ): Allowed {
    const { identity, login, token, issuedMs } = call
    const { store, nowMs } = this.#deps
    const record = this.#record
    // It was checked before the call came here; it may have ended since.
    const hasEnded = (name: string | undefined): boolean =>
      name !== undefined && store.cuts.hasEnded(name, issuedMs, nowMs())
    if (hasEnded(login) || hasEnded(token)) throw signInEnded()
    const sandbox = { owner: record.owner, grants: store.sharing.grantsOf(identity) }
    const access = requireAccess(accessOf(sandbox, identity, { session, nowMs: nowMs() }), need)
    return { record, access }
  }

  /** Id of the sandbox; throws when there is none. */
  get id(): string {
    return this.#record.id
  }

  /** Writes the record unless there is one already. */
  async create(record: Pick<SandboxRecord, 'id' | 'owner' | 'name' | 'settings'>): Promise<SandboxView> {
    const { store, nowMs } = this.#deps
    store.insert({
      ...record,
      createdMs: nowMs(),
      lastActivityMs: nowMs(),
      state: { is: 'stopped' },
    })
    const view = this.view(this.allow({ identity: record.owner }, 'own').record)
    await this.#deps.index.report(record.owner, view)
    return view
  }

  /** Starts the sandbox unless it runs; all who ask at once share one start. */
  async start(requestId: string): Promise<void> {
    if (this.#state.is === 'running') return
    this.#starting ??= this.#inTurn(() => this.#start(requestId)).finally(() => {
      this.#starting = undefined
    })
    await this.#starting
  }

  async stop(requestId: string, discard: boolean): Promise<void> {
    if (!this.#filesSurvive && !discard && this.#state.is !== 'stopped')
      throw new SandwireError('needs_discard', 'Cannot stop the sandbox: its files would be lost')
    await this.#inTurn(() => this.#stop(requestId))
  }

  /**
   * Refuses whoever may not destroy it. A record can be missing where an earlier attempt broke off; then its owner, who still has
   * the name, finishes it, and for everybody else there is nothing.
   */
  async allowDestroy(call: SandboxCall, sandbox: string): Promise<void> {
    if (this.#deps.store.read() !== undefined) this.allow(call, 'own')
    else if (!(await this.#deps.index.has(call.identity, sandbox))) throw noSuchSandbox()
  }

  /** `lastWords` is called when everything but what is stored here is gone. */
  async destroy(call: SandboxCall, sandbox: string, lastWords?: () => Promise<void>): Promise<void> {
    const { identity, requestId } = call
    const { store, provider, index, alarm, deleteAll } = this.#deps
    if (store.read() !== undefined) this.allow(call, 'own')
    await this.#inTurn(async () => {
      await provider.destroy(sandbox, requestId)
      await index.remove(identity, sandbox)
      await lastWords?.()
      await alarm.clear()
      await deleteAll()
      store.forget()
    })
  }

  /** The running sandbox; it is started when `mayStart`, otherwise one that does not run is `sandbox_stopped`. */
  async ready(requestId: string, mayStart: boolean): Promise<Running> {
    if (mayStart) await this.start(requestId)
    else if (this.#state.is !== 'running') await this.observe(requestId)
    const state = this.#state
    if (state.is !== 'running') throw new SandwireError('sandbox_stopped', 'The sandbox does not run')
    return state
  }

  /** Asks the provider how the sandbox is, once no start or stop is under way. */
  observe(requestId: string): Promise<SandboxState> {
    return this.#inTurn(async () => {
      await this.#observed(await this.#deps.provider.status(this.#record.id, requestId))
      return this.#state
    })
  }

  async apply(event: SandboxEvent): Promise<readonly ('start' | 'stop')[]> {
    const { store, alarm, nowMs, settings, log } = this.#deps
    const record = this.#record
    const { state, effects } = step(record.state, event)
    store.setState(state)
    const left: ('start' | 'stop')[] = []
    for (const effect of effects) {
      if (effect === 'watch') await alarm.set(nowMs() + settings.alarmMs)
      else if (effect === 'rest') await alarm.clear()
      else if (effect === 'publish') {
        log.info('sandbox_state', { sandbox: record.id, state: state.is })
        await this.publish(state.is === 'running' ? undefined : [])
      } else left.push(effect)
    }
    return left
  }

  /** Tells the account's index. */
  async publish(sessions?: readonly SessionFacts[]): Promise<void> {
    const record = this.#record
    await this.#deps.index.report(record.owner, this.view(record), sessions)
  }

  /** Reads what moves in a running sandbox and tells the index. */
  async readActivity(running: Running, requestId: string): Promise<readonly SessionFacts[]> {
    const { store, sandboxd, refusals, nowMs } = this.#deps
    const { id } = this.#record
    const path = '/activity'
    const stays = store.stays.all()
    const answer = await sandboxd(id).ask(running.address, controlItself(requestId), { method: 'GET', path })
    const sessions = decodeActivity(answer, id, nowMs())
    if (sessions === undefined) throw notUnderstood()
    for (const session of sessions) store.touch(lastMoveMs(session))
    const alive = new Set(sessions.map((session) => session.id))
    for (const session of store.pins().keys()) if (!alive.has(session)) store.forgetPin(session)
    // Of those that were there before it was asked: it cannot know the others yet.
    for (const { session } of stays) if (!alive.has(session)) store.stays.remove(session)
    const pins = store.pins()
    const known = sessions.map((session) => withPin(session, pins))
    await this.publish(known)
    await refusals.hear(answer)
    return known
  }

  /** The alarm: how is it, what moves, may it stop. */
  async look(requestId: string): Promise<void> {
    const { store, alarm, nowMs, settings, log } = this.#deps
    const sandbox = store.read()?.id
    if (sandbox === undefined) return
    // What is being started is not there yet; whoever starts it says how it went.
    if (this.#starting !== undefined) return alarm.set(nowMs() + settings.alarmMs)
    try {
      const state = await this.observe(requestId)
      const sessions = state.is === 'running' ? await this.readActivity(state, requestId) : []
      if (this.#isIdle(sessions))
        await this.#inTurn(() => (this.#isIdle(sessions) ? this.#stop(requestId, 'idle') : undefined))
      if (this.#state.is === 'running') await this.#renew(requestId)
    } catch (caught) {
      // The next alarm looks again; what broke shows in the log and, if it lasts, to whoever attaches.
      const { code, message } = SandwireError.from(caught)
      log.warn('look_failed', { request_id: requestId, sandbox, code, cause: message })
    }
    const after = store.read()?.state.is
    if (after === 'running' || after === 'stopping' || after === 'creating')
      await alarm.set(nowMs() + settings.alarmMs)
  }

  /** The sandbox as whoever may see it sees it. */
  show({ record, access }: Allowed): SandboxView {
    const view = this.view(record)
    if (access.grant === undefined) return view
    const owner = this.#deps.store.sharing.grant(access.grant)?.ownerName ?? ''
    return { ...view, access: standingOf(access), owner }
  }

  view(record: SandboxRecord): SandboxView {
    const { state, settings } = record
    const sleepMs = this.#sleepAfterMs(settings)
    return {
      id: record.id,
      name: record.name,
      state: state.is,
      reason: 'reason' in state ? (state.reason ?? null) : null,
      createdMs: record.createdMs,
      startedMs: state.is === 'running' ? state.startedMs : null,
      lastActivityMs: record.lastActivityMs,
      sleepAfterSeconds: sleepMs === null ? null : Math.round(sleepMs / 1000),
      ephemeral: !this.#filesSurvive,
      network: settings.network,
      limits: settings.limits,
      env: Object.keys(settings.env),
    }
  }

  get #record(): SandboxRecord {
    const record = this.#deps.store.read()
    if (record === undefined) throw noSuchSandbox()
    return record
  }

  get #state(): SandboxState {
    return this.#record.state
  }

  get #filesSurvive(): boolean {
    return this.#deps.provider.survives.stop !== 'nothing'
  }

  #sleepAfterMs({ sleepAfterMs }: SandboxSettings): number | null {
    return sleepAfter(sleepAfterMs, this.#deps.settings.sleepAfterMs, this.#filesSurvive)
  }

  #isIdle(sessions: readonly SessionFacts[]): boolean {
    const { state, settings, lastActivityMs } = this.#record
    if (state.is !== 'running') return false
    const { store, nowMs } = this.#deps
    const pins = store.pins()
    return isIdle({
      nowMs: nowMs(),
      lastActivityMs: Math.max(lastActivityMs, state.startedMs),
      sleepAfterMs: this.#sleepAfterMs(settings),
      // Again: it may have been pinned while this waited for its turn.
      hasPin: sessions.some((session) => keepsAwake(withPin(session, pins))),
    })
  }

  async #start(requestId: string): Promise<void> {
    const { provider, store, publicKey, nowMs } = this.#deps
    if (!(await this.apply({ type: 'start' })).includes('start')) return
    const { id, name, settings } = this.#record
    const { network, limits, env } = settings
    try {
      const status = await provider.start(
        { id, name, publicKey, network, limits, env, ...this.#traffic },
        requestId,
      )
      if (status.state !== 'running')
        throw new SandwireError('sandbox_failed', 'The sandbox stopped while it was starting')
      store.touch(nowMs())
      await this.#observed(status)
      await this.#renew(requestId)
    } catch (caught) {
      const error = SandwireError.from(caught)
      await this.apply({ type: 'startFailed', reason: error.code })
      throw error
    }
  }

  /** What the operator allows every sandbox. */
  get #traffic(): Pick<StartSpec, 'maxSessions' | 'outputBytesPerSecond'> {
    const { sessionsPerSandbox, outputBytesPerSecond } = this.#deps.settings.limits
    return {
      maxSessions: sessionsPerSandbox,
      ...(outputBytesPerSecond === 0 ? {} : { outputBytesPerSecond }),
    }
  }

  /** For longer than until the next look, in case that one comes late. */
  async #renew(requestId: string): Promise<void> {
    const { provider, settings } = this.#deps
    await provider.renew(this.#record.id, RENEWED_LOOKS * settings.alarmMs, requestId)
  }

  async #stop(requestId: string, reason: StopReason = 'requested'): Promise<void> {
    if (!(await this.apply({ type: 'stop' })).includes('stop')) return
    try {
      await this.#observed(await this.#deps.provider.stop(this.#record.id, requestId, reason))
    } catch (error) {
      await this.apply({ type: 'stopFailed' })
      throw error
    }
  }

  async #observed(status: SandboxStatus): Promise<void> {
    await this.apply({ type: 'observed', status })
  }

  #inTurn<T>(run: () => Promise<T> | T): Promise<T> {
    const mine = this.#tail.then(run)
    // Whoever waits for its turn does not care how the last one went.
    this.#tail = mine.catch(() => undefined)
    return mine
  }
}
