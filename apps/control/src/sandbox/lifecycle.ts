import { KeyedSerializer } from '@sandwire/async'
import { StartFailure, type SandboxStatus, type StartSpec } from '@sandwire/internal-api'
import { type ErrorCode, SandwireError, type StopReason } from '@sandwire/protocol'
import { signInEnded } from '../auth/identity.ts'
import { settingsWithin } from '../ceilings/ceilings.ts'
import { type Access, accessName, accessOf, type Need, requireAccess } from './access.ts'
import type { SandboxCall } from './call.ts'
import { DESTROY_RETRY_MS, destroyerOf, destroySandbox, resumeDestroy } from './destroy.ts'
import type { LifecycleDependencies } from './lifecycle-dependencies.ts'
import { beingDestroyed, noSuchSandbox } from './not-found.ts'
import type { SandboxRecord, SandboxSettings, SandboxView } from './record.ts'
import { controlItself, invalidResponse } from './sandboxd-client.ts'
import {
  agentPins,
  decodeActivity,
  hasRun,
  keepsAwake,
  lastActivityMs as lastActivityOf,
  type SessionFacts,
  sessionPins,
  withPin,
} from './session-view.ts'
import { startWithFiles } from './start-with-files.ts'
import { isAtRest, isIdle, type SandboxEvent, type SandboxState, sleepAfter, step } from './state.ts'

/** Polls for which a container is kept running without its object: one may be late. */
const RENEWED_POLLS = 3

/** A sandboxd that does not respond delays its own stop by this much. */
const STOP_REASON_TIMEOUT_MS = 2_000

/** Errors after which a start may still succeed: the provider gave no valid answer. */
const UNCERTAIN_CODES: readonly ErrorCode[] = ['provider_unavailable', 'internal']

/** States that end by themselves. */
const CHANGING: readonly SandboxState['kind'][] = ['creating', 'stopping', 'destroying']

/** How old a reported state may be. */
const FRESH_MS = 2_000

/** A sandbox and the caller's access to it. */
export interface Authorized {
  readonly record: SandboxRecord
  readonly access: Access
}

export type Running = Extract<SandboxState, { kind: 'running' }>

/** Performs the effects of the sandbox's state machine, one lifecycle change at a time. */
export class SandboxLifecycle {
  readonly #deps: LifecycleDependencies
  #starting: Promise<void> | undefined
  /** When the provider last reported the state. */
  #observedMs = Number.NEGATIVE_INFINITY
  /** A stop saves the files while the state is still `running`; a start that is requested then follows it. */
  #isStopping = false
  readonly #serializer = new KeyedSerializer()

  constructor(deps: LifecycleDependencies) {
    this.#deps = deps
  }

  /**
   * Returns the caller's access if it is sufficient; throws `sandbox_not_found` for callers without any. A sandbox that is being
   * destroyed can only be seen and managed.
   */
  authorize(
    call: Pick<SandboxCall, 'identity' | 'login' | 'token' | 'issuedMs'>,
    need: Need,
    session?: string,
  ): Authorized {
    const { identity, login, token, issuedMs } = call
    const { store, nowMs } = this.#deps
    const record = this.#record
    // The Worker authenticated the call, but the sign-in may have ended since.
    const hasEnded = (name: string | undefined): boolean =>
      name !== undefined && store.endedLogins.includes(name, issuedMs, nowMs())
    if (hasEnded(login) || hasEnded(token)) throw signInEnded()
    const sandbox = { owner: record.owner, grants: store.sharing.grantsOf(identity) }
    const access = requireAccess(accessOf(sandbox, identity, { session, nowMs: nowMs() }), need)
    if (need === 'watch' || need === 'work') this.#refuseDestroying()
    return { record, access }
  }

  /** Throws when there is no sandbox. */
  get id(): string {
    return this.#record.id
  }

  /** Runs and conversations whose agents work in the sandbox. */
  get agents(): readonly string[] {
    return agentPins(this.#deps.store.pins())
  }

  /** Environment of the sandbox's processes. */
  get env(): Readonly<Record<string, string>> {
    return settingsWithin(this.#record.settings, this.#deps.ceilings).env
  }

  /** Creates the record unless it exists. */
  async create(record: Pick<SandboxRecord, 'id' | 'owner' | 'name' | 'settings'>): Promise<SandboxView> {
    const { store, nowMs } = this.#deps
    store.insert({
      ...record,
      createdMs: nowMs(),
      lastActivityMs: nowMs(),
      state: { kind: 'stopped' },
    })
    const view = this.view(this.authorize({ identity: record.owner }, 'own').record)
    this.#refuseDestroying()
    await this.#deps.index.report(record.owner, view)
    return view
  }

  /** Starts the sandbox unless it runs; concurrent callers share one start. */
  async start(requestId: string): Promise<void> {
    if (this.#state.kind === 'running' && !this.#isStopping) return
    this.#starting ??= this.#serialize(() => this.#start(requestId)).finally(() => {
      this.#starting = undefined
    })
    await this.#starting
  }

  /** The same, but does not trust that a sandbox runs which ran when the provider was last asked. */
  async startObserved(requestId: string): Promise<void> {
    if (this.#state.kind === 'running') await this.observe(requestId)
    await this.start(requestId)
  }

  /** Reads the state from the provider unless it is seconds old, or changing. */
  async refresh(requestId: string): Promise<void> {
    const { state } = this.#record
    if (CHANGING.includes(state.kind)) return
    if (this.#deps.nowMs() < this.#observedMs + FRESH_MS) return
    try {
      await this.observe(requestId)
    } catch (error) {
      // A sandbox at rest stays there while the provider is away.
      if (!isAtRest(state)) throw error
    }
  }

  async stop(requestId: string, discard: boolean): Promise<void> {
    if (!this.#filesSurvive && !discard && this.#state.kind !== 'stopped')
      throw new SandwireError('needs_discard', 'Cannot stop the sandbox: its files would be lost')
    await this.#serialize(() => this.#stop(requestId, 'requested', discard))
  }

  /**
   * Throws unless the caller may destroy the sandbox. The record is missing when an earlier attempt was interrupted; the account
   * that still has the name may then finish it.
   */
  async authorizeDestroy(call: SandboxCall, sandbox: string): Promise<void> {
    if (this.#deps.store.read() !== undefined) this.authorize(call, 'own')
    else if (!(await this.#deps.index.has(call.identity, sandbox))) throw noSuchSandbox()
  }

  /** Stores the intent, then destroys the sandbox. If that fails, the alarm finishes it. */
  async destroy(call: SandboxCall, sandbox: string): Promise<void> {
    const { requestId } = call
    const by = destroyerOf(call)
    const hasRecord = this.#deps.store.read() !== undefined
    if (hasRecord) {
      this.authorize(call, 'own')
      await this.apply({ type: 'destroy', by })
    }
    await this.#serialize(async () => {
      // Another call may have finished it meanwhile.
      if (hasRecord && this.#deps.store.read() === undefined) return
      await destroySandbox(this.#deps, by, { sandbox, requestId })
    })
  }

  /** The running sandbox; starts it if `mayStart`, else throws `sandbox_stopped` when it is not running. */
  async ready(requestId: string, mayStart: boolean): Promise<Running> {
    if (mayStart) await this.start(requestId)
    else if (this.#state.kind !== 'running') await this.observe(requestId)
    this.#refuseDestroying()
    const state = this.#state
    if (state.kind !== 'running') throw new SandwireError('sandbox_stopped', 'The sandbox is not running')
    return state
  }

  /** Admits a session that is about to start; throws `ceiling_exceeded` when the account has too many. */
  async admitSession(session: string | undefined): Promise<void> {
    const { ceilings, index } = this.#deps
    const { sessions = null } = ceilings.account
    if (session === undefined || sessions === null) return
    await index.admitSession(this.#record.owner, session)
  }

  /** Stops the sandbox without saving its files and starts it again; `prepare` runs in between. */
  restart(requestId: string, prepare: () => void | Promise<void>): Promise<void> {
    return this.#serialize(async () => {
      await this.#stop(requestId, 'requested', true)
      await prepare()
      await this.#start(requestId)
    })
  }

  /** Reads the state from the provider, after any start or stop in progress. */
  observe(requestId: string): Promise<SandboxState> {
    return this.#serialize(async () => {
      const status = await this.#deps.provider.status(this.#record.id, requestId)
      const isIncomplete = status.state === 'running' && !this.#deps.files.hasFiles(status.epoch)
      await this.#observed(isIncomplete ? await this.#stopIncomplete(requestId) : status)
      return this.#state
    })
  }

  /** Stops a sandbox that has only part of its files: nothing may run in it, and nothing of it may be saved. */
  #stopIncomplete(requestId: string): Promise<SandboxStatus> {
    const { provider, log } = this.#deps
    const { id } = this.#record
    log.warn('restore_incomplete', { sandbox: id, request_id: requestId })
    return provider.stop(id, requestId, 'requested')
  }

  /** Performs a change of state; returns what the caller must have the provider do. */
  async apply(event: SandboxEvent): Promise<readonly ('start' | 'stop')[]> {
    const { store, alarm, nowMs, settings, log } = this.#deps
    const record = this.#record
    const { state, effects } = step(record.state, event)
    store.setState(state)
    const left: ('start' | 'stop')[] = []
    for (const effect of effects) {
      if (effect === 'set_alarm')
        await alarm.set(nowMs() + (state.kind === 'destroying' ? DESTROY_RETRY_MS : settings.alarmMs))
      else if (effect === 'clear_alarm') await alarm.clear()
      else if (effect === 'publish') {
        log.info('sandbox_state', { sandbox: record.id, state: state.kind })
        await this.publish(state.kind === 'running' ? undefined : [])
      } else if (effect === 'reserve') {
        await this.#deps.index.reserve(record.owner, this.view(this.#record))
        log.info('sandbox_state', { sandbox: record.id, state: state.kind })
      } else left.push(effect)
    }
    return left
  }

  /** Updates the account's index. */
  async publish(sessions?: readonly SessionFacts[]): Promise<void> {
    const record = this.#record
    await this.#deps.index.report(record.owner, this.view(record), sessions)
  }

  /** Reads the sessions of a running sandbox and updates the index. */
  async readActivity(running: Running, requestId: string): Promise<readonly SessionFacts[]> {
    const { store, sandboxd, provider, refusals, nowMs } = this.#deps
    const { id } = this.#record
    const path = '/activity'
    const connections = store.recheckedConnections.all()
    const response = await sandboxd(id).request(running.address, controlItself(requestId), {
      method: 'GET',
      path,
    })
    const own = decodeActivity(response, id, nowMs())
    if (own === undefined) throw invalidResponse()
    const sessions = [...own, ...(provider.execSessions?.list() ?? [])]
    for (const session of sessions) store.touch(lastActivityOf(session))
    const alive = new Set(sessions.map((session) => session.id))
    for (const session of sessionPins(store.pins())) if (!alive.has(session)) store.removePin(session)
    // Only those from before the request: sandboxd may not know newer ones yet.
    for (const { session } of connections)
      if (!alive.has(session)) store.recheckedConnections.removeOfSession(session)
    const pins = store.pins()
    const known = sessions.map((session) => withPin(session, pins))
    await this.publish(known)
    this.#deps.sandboxdMetrics.receive(id, running, response)
    await refusals.receive(response)
    return known
  }

  /** Reads the state and activity, and stops the sandbox when it is idle. Called by the alarm. */
  async poll(requestId: string): Promise<void> {
    const { store, alarm, nowMs, settings, log } = this.#deps
    const record = store.read()
    if (record === undefined) return
    const sandbox = record.id
    const { state: before } = record
    if (before.kind === 'destroying')
      return resumeDestroy(this.#deps, { sandbox, requestId }, () =>
        this.#serialize(() => destroySandbox(this.#deps, before.by, { sandbox, requestId })),
      )
    // The start in progress reports its own result.
    if (this.#starting !== undefined) return alarm.set(nowMs() + settings.alarmMs)
    try {
      const state = await this.observe(requestId)
      const sessions = state.kind === 'running' ? await this.readActivity(state, requestId) : []
      if (this.#isIdle(sessions))
        await this.#serialize(async () =>
          this.#isIdle(sessions) ? this.#stop(requestId, 'idle') : undefined,
        )
      if (this.#state.kind === 'running') {
        this.#deps.files.watch()
        await this.#renew(requestId)
      }
    } catch (caught) {
      // The next alarm polls again; a lasting problem is also reported to clients that attach.
      const { code, message } = SandwireError.from(caught)
      log.warn('poll_failed', { request_id: requestId, sandbox, code, cause: message })
    }
    const after = store.read()?.state
    if (after !== undefined && !isAtRest(after)) await alarm.set(nowMs() + settings.alarmMs)
  }

  /** The sandbox as the caller sees it. */
  show({ record, access }: Authorized): SandboxView {
    const view = this.view(record)
    if (access.grant === undefined) return view
    const owner = this.#deps.store.sharing.grant(access.grant)?.ownerName ?? ''
    return { ...view, access: accessName(access), owner }
  }

  view(record: SandboxRecord): SandboxView {
    const { state } = record
    const settings = settingsWithin(record.settings, this.#deps.ceilings)
    const sleepMs = this.#sleepAfterMs(settings)
    return {
      id: record.id,
      name: record.name,
      state: state.kind,
      reason: 'reason' in state ? (state.reason ?? null) : null,
      createdMs: record.createdMs,
      startedMs: state.kind === 'running' ? state.startedMs : null,
      lastActivityMs: record.lastActivityMs,
      sleepAfterSeconds: sleepMs === null ? null : Math.round(sleepMs / 1000),
      ephemeral: !this.#filesSurvive,
      saved: this.#deps.files.isEnabled ? this.#deps.files.saved : null,
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
    return this.#deps.provider.survives.stop !== 'nothing' || this.#deps.files.isEnabled
  }

  #sleepAfterMs({ sleepAfterMs }: SandboxSettings): number | null {
    const { sandbox, defaults } = this.#deps.ceilings
    const maxMs = sandbox.idleSeconds === null ? null : sandbox.idleSeconds * 1000
    return sleepAfter(sleepAfterMs, { fallbackMs: defaults.idleSeconds * 1000, maxMs }, this.#filesSurvive)
  }

  #isIdle(sessions: readonly SessionFacts[]): boolean {
    const { state, settings, lastActivityMs } = this.#record
    if (state.kind !== 'running') return false
    const { store, nowMs } = this.#deps
    const pins = store.pins()
    return isIdle({
      nowMs: nowMs(),
      lastActivityMs: Math.max(lastActivityMs, state.startedMs),
      sleepAfterMs: this.#sleepAfterMs(settings),
      // Read again: a session may have been pinned while this waited.
      hasPin: sessions.some((session) => keepsAwake(withPin(session, pins))) || hasRun(pins),
    })
  }

  #refuseDestroying(): void {
    if (this.#state.kind === 'destroying') throw beingDestroyed()
  }

  async #start(requestId: string): Promise<void> {
    const { store, files, publicKey, nowMs } = this.#deps
    this.#refuseDestroying()
    if (!(await this.#admitStart())) return
    const { id, name, owner: account, settings, hasFiles } = this.#record
    const { network, limits, env } = settingsWithin(settings, this.#deps.ceilings)
    try {
      const spec = { id, name, account, publicKey, network, limits, env, hasFiles, ...this.#traffic }
      const status = await startWithFiles(this.#deps, spec, requestId)
      if (status.state !== 'running')
        throw new SandwireError('sandbox_failed', 'The sandbox stopped while it was starting')
      const target = { sandbox: id, address: status.address, epoch: status.epoch }
      try {
        await files.restoreAtStart(target, requestId)
      } catch (error) {
        // The reason of the failed restore says more than that of a failed stop; a later look stops it again.
        await this.#stopIncomplete(requestId).catch(() => undefined)
        throw error
      }
      store.touch(nowMs())
      await this.#observed(status)
      files.watch()
      await this.#renew(requestId)
    } catch (caught) {
      const error = SandwireError.from(caught)
      await this.apply({
        type: 'startFailed',
        reason: error.cause instanceof StartFailure ? error.cause.reason : error.code,
        isUncertain: UNCERTAIN_CODES.includes(error.code),
      })
      throw error
    }
  }

  /** Enters the starting state; false when the sandbox runs already. */
  async #admitStart(): Promise<boolean> {
    const before = this.#state
    try {
      return (await this.apply({ type: 'start' })).includes('start')
    } catch (error) {
      await this.apply({ type: 'startRefused', before })
      throw error
    }
  }

  /** The operator's limits for every sandbox. */
  get #traffic(): Pick<StartSpec, 'maxSessions' | 'outputBytesPerSecond'> {
    const { sessionsPerSandbox, outputBytesPerSecond } = this.#deps.settings.limits
    return {
      maxSessions: sessionsPerSandbox,
      ...(outputBytesPerSecond === 0 ? {} : { outputBytesPerSecond }),
    }
  }

  /** Keeps a container running until after the next polls. */
  async #renew(requestId: string): Promise<void> {
    const { provider, settings } = this.#deps
    await provider.renew(this.#record.id, RENEWED_POLLS * settings.alarmMs, requestId)
  }

  async #stop(requestId: string, reason: StopReason = 'requested', discard = false): Promise<void> {
    this.#isStopping = true
    try {
      if (!discard) await this.#deps.files.saveBeforeStop(requestId)
      await this.#end(requestId, reason)
    } finally {
      this.#isStopping = false
    }
  }

  async #end(requestId: string, reason: StopReason): Promise<void> {
    const before = this.#state
    if (!(await this.apply({ type: 'stop' })).includes('stop')) return
    try {
      if (before.kind === 'running') await this.#announceStop(before, requestId, reason)
      await this.#observed(await this.#deps.provider.stop(this.#record.id, requestId, reason))
    } catch (error) {
      await this.apply({ type: 'stopFailed' })
      throw error
    }
  }

  /** Gives sandboxd the reason for its clients, where the provider cannot. A failure must not prevent the stop. */
  async #announceStop(running: Running, requestId: string, reason: StopReason): Promise<void> {
    const { provider, sandboxd } = this.#deps
    if (provider.deliversStopReason) return
    try {
      await sandboxd(this.#record.id).request(running.address, controlItself(requestId), {
        method: 'PUT',
        path: '/stop-reason',
        body: { reason },
        deadline: { ms: STOP_REASON_TIMEOUT_MS, late: invalidResponse },
      })
    } catch {
      // Clients are then notified of the stop without its reason.
    }
  }

  async #observed(status: SandboxStatus): Promise<void> {
    this.#observedMs = this.#deps.nowMs()
    await this.apply({ type: 'observed', status })
  }

  #serialize<T>(run: () => Promise<T>): Promise<T> {
    return this.#serializer.run('lifecycle', run)
  }
}
