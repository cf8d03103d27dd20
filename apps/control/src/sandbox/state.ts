import type { SandboxStatus } from '@sandwire/internal-api'

/** Lifecycle state of a sandbox. */
export type SandboxState =
  /** Starting. */
  | { readonly kind: 'creating' }
  | {
      readonly kind: 'running'
      /** Address of its sandboxd at the provider. */
      readonly address: string
      /** Unique for every start. */
      readonly epoch: string
      readonly startedMs: number
      /** Protocol version of its sandboxd, once known. */
      readonly protocol?: number
    }
  /** Stopping. */
  | { readonly kind: 'stopping' }
  /** Not running; whether files survive depends on the provider. `reason`: when no user stopped it. */
  | { readonly kind: 'stopped'; readonly reason?: string }
  /** The last start failed. `isUncertain`: the provider did not answer, so it may run after all. */
  | { readonly kind: 'failed'; readonly reason: string; readonly isUncertain?: true }
  /** Being deleted with its files. It never leaves this state, and the alarm finishes what a request could not. */
  | { readonly kind: 'destroying'; readonly by: Destroyer }

/** Who requested that a sandbox is destroyed, for the audit. */
export interface Destroyer {
  readonly identity: string
  readonly name: string
  readonly address: string
  readonly login?: string
}

export type SandboxEvent =
  | { readonly type: 'start' }
  /** The start was not admitted; nothing was started. */
  | { readonly type: 'startRefused'; readonly before: SandboxState }
  | { readonly type: 'startFailed'; readonly reason: string; readonly isUncertain?: boolean }
  | { readonly type: 'stop' }
  | { readonly type: 'stopFailed' }
  | { readonly type: 'destroy'; readonly by: Destroyer }
  /** The provider reported its status. */
  | { readonly type: 'observed'; readonly status: SandboxStatus }
  /** sandboxd reported its protocol version. */
  | { readonly type: 'version_known'; readonly epoch: string; readonly protocol: number }

/** What the object must do, in order. */
export type SandboxEffect =
  /** Have the account admit the start and show it. */
  | 'reserve'
  /** Have the provider start it. */
  | 'start'
  /** Have the provider stop it. */
  | 'stop'
  /** Set the alarm. */
  | 'set_alarm'
  /** Clear the alarm. */
  | 'clear_alarm'
  /** Update the account's index. */
  | 'publish'

export interface Step {
  readonly state: SandboxState
  readonly effects: readonly SandboxEffect[]
}

const unchanged = (state: SandboxState): Step => ({ state, effects: [] })

function observe(state: SandboxState, status: SandboxStatus): Step {
  if (status.state === 'running') {
    const { address, epoch, startedMs } = status
    const isSame = state.kind === 'running' && state.epoch === epoch && state.address === address
    if (isSame) return unchanged(state)
    return { state: { kind: 'running', address, epoch, startedMs }, effects: ['set_alarm', 'publish'] }
  }
  if (status.state === 'starting')
    return state.kind === 'creating'
      ? { state, effects: ['set_alarm'] }
      : { state: { kind: 'creating' }, effects: ['set_alarm', 'publish'] }
  const reason = status.state === 'stopped' ? status.reason : undefined
  if (state.kind === 'stopped' && (reason === undefined || reason === state.reason)) return unchanged(state)
  // A sandbox that failed to start is not running either; `failed` says more.
  if (state.kind === 'failed') {
    if (state.isUncertain !== true) return unchanged(state)
    return { state: { kind: 'failed', reason: state.reason }, effects: ['clear_alarm'] }
  }
  return {
    state: { kind: 'stopped', ...(reason === undefined ? {} : { reason }) },
    effects: ['clear_alarm', 'publish'],
  }
}

/** The next state and what must be done. */
export function step(state: SandboxState, event: SandboxEvent): Step {
  if (state.kind === 'destroying')
    return { state, effects: event.type === 'destroy' ? ['set_alarm', 'publish'] : [] }
  switch (event.type) {
    case 'destroy':
      return { state: { kind: 'destroying', by: event.by }, effects: ['set_alarm', 'publish'] }
    case 'start':
      // Also in `creating`: an object that was evicted during a start repeats it; starting is idempotent.
      return state.kind === 'running'
        ? unchanged(state)
        : { state: { kind: 'creating' }, effects: ['set_alarm', 'reserve', 'start'] }
    case 'startRefused': {
      // A start or stop that was interrupted may have left it running; the alarm reads that from the provider.
      const isKnown = event.before.kind === 'stopped' || event.before.kind === 'failed'
      return { state: isKnown ? event.before : { kind: 'stopped' }, effects: ['set_alarm', 'publish'] }
    }
    case 'startFailed':
      // The alarm finds out whether it runs.
      if (event.isUncertain === true)
        return {
          state: { kind: 'failed', reason: event.reason, isUncertain: true },
          effects: ['set_alarm', 'publish'],
        }
      return { state: { kind: 'failed', reason: event.reason }, effects: ['clear_alarm', 'publish'] }
    case 'stop':
      return state.kind === 'stopped'
        ? unchanged(state)
        : { state: { kind: 'stopping' }, effects: ['publish', 'stop'] }
    case 'stopFailed':
      // The actual state is unknown; the alarm reads it from the provider.
      return { state, effects: ['set_alarm'] }
    case 'observed':
      return observe(state, event.status)
    case 'version_known':
      return state.kind === 'running' && state.epoch === event.epoch
        ? unchanged({ ...state, protocol: event.protocol })
        : unchanged(state)
  }
}

/** True when the sandbox is known not to run, so that it need not be polled. */
export function isAtRest(state: SandboxState): boolean {
  return state.kind === 'stopped' || (state.kind === 'failed' && state.isUncertain !== true)
}

/** What decides whether a running sandbox is idle. */
export interface IdleFacts {
  readonly nowMs: number
  /** Latest input or output, or the start of the sandbox or of a process. */
  readonly lastActivityMs: number
  /** Null: never. */
  readonly sleepAfterMs: number | null
  /** A pinned session runs. */
  readonly hasPin: boolean
}

/** True when the sandbox has been inactive for long enough to be stopped. An attachment alone is not activity. */
export function isIdle({ nowMs, lastActivityMs, sleepAfterMs, hasPin }: IdleFacts): boolean {
  return sleepAfterMs !== null && !hasPin && nowMs - lastActivityMs >= sleepAfterMs
}

/**
 * Idle time until a sandbox stops: as created, else the server's default, unless stopping would lose its files; never longer than
 * the operator's ceiling.
 */
export function sleepAfter(
  requested: number | null | undefined,
  { fallbackMs, maxMs }: { readonly fallbackMs: number; readonly maxMs: number | null },
  filesSurviveStop: boolean,
): number | null {
  const own = requested === undefined && filesSurviveStop ? fallbackMs : (requested ?? null)
  return own === null || maxMs === null ? (own ?? maxMs) : Math.min(own, maxMs)
}
