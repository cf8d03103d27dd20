import { doublingDelayMs } from '@sandwire/protocol'

/** A save begins when files have not changed for this long … */
export const QUIET_MS = 2_000
/** … and at the latest this long after the first change. */
export const MAX_DELAY_MS = 10_000
/** Delay after the first failed attempt; it doubles with each further one. */
const RETRIES = { firstMs: 1_000, maxMs: 30_000 }
/** Attempts before the state is an error. */
const MAX_ATTEMPTS = 3
/** Between attempts in the error state. */
const ERROR_RETRY_MS = 60_000
/** Saves take at most about a ninth of the time. */
const REST_FACTOR = 8

/** Whether the files of a running sandbox are saved. */
export type SyncState =
  /** Everything known is saved. */
  | { readonly kind: 'idle' }
  /** Files have changed; a save waits for a quiet moment. */
  | {
      readonly kind: 'pending'
      readonly firstMs: number
      readonly lastMs: number
      readonly notBeforeMs: number
    }
  /** A periodic save runs. `isDirty`: files changed after it began. `isAwaited`: a flush was requested after it began. */
  | {
      readonly kind: 'syncing'
      readonly isDirty: boolean
      readonly isAwaited: boolean
      readonly attempts: number
    }
  /** A save runs that a stop, a checkpoint or the last disconnect waits for. */
  | { readonly kind: 'flushing'; readonly isDirty: boolean; readonly attempts: number }
  | { readonly kind: 'retrying'; readonly attempts: number; readonly atMs: number }
  /** Saving failed repeatedly; it is tried again by the alarm. */
  | { readonly kind: 'error'; readonly attempts: number; readonly atMs: number }

export type SyncEvent =
  | { readonly type: 'changed' }
  /** Files may have changed without being observed: a scan of all folders is due. Says nothing about when they changed. */
  | { readonly type: 'unknown' }
  /** Save now. */
  | { readonly type: 'flush' }
  /** Time has passed. */
  | { readonly type: 'tick' }
  | { readonly type: 'saved'; readonly tookMs: number }
  | { readonly type: 'failed' }
  /** The sandbox has started or stopped; what was not saved is lost or saved by the stop. */
  | { readonly type: 'reset' }

export interface SyncStep {
  readonly state: SyncState
  /** A save must begin. */
  readonly saves: boolean
}

export const IDLE: SyncState = { kind: 'idle' }

const stay = (state: SyncState): SyncStep => ({ state, saves: false })

function beginFlush(attempts: number): SyncStep {
  return { state: { kind: 'flushing', isDirty: false, attempts }, saves: true }
}

function beginSync(attempts: number): SyncStep {
  return { state: { kind: 'syncing', isDirty: false, isAwaited: false, attempts }, saves: true }
}

function pending(nowMs: number, notBeforeMs: number): SyncStep {
  return stay({ kind: 'pending', firstMs: nowMs, lastMs: nowMs, notBeforeMs })
}

/** The next state, and whether a save must begin. */
export function stepSync(state: SyncState, event: SyncEvent, nowMs: number): SyncStep {
  switch (event.type) {
    case 'changed':
      return onChange(state, nowMs)
    case 'unknown':
      return state.kind === 'idle' ? pending(nowMs, 0) : stay(state)
    case 'flush':
      return onFlush(state)
    case 'tick':
      return isDue(state, nowMs) ? beginSync('attempts' in state ? state.attempts : 0) : stay(state)
    case 'saved':
      return onSaved(state, event.tookMs, nowMs)
    case 'failed':
      return onFailed(state, nowMs)
    case 'reset':
      return stay(IDLE)
  }
}

function onChange(state: SyncState, nowMs: number): SyncStep {
  switch (state.kind) {
    case 'idle':
      return pending(nowMs, 0)
    case 'pending':
      return stay({ ...state, lastMs: nowMs })
    case 'syncing':
    case 'flushing':
      return stay({ ...state, isDirty: true })
    case 'retrying':
    case 'error':
      return stay(state)
  }
}

function onFlush(state: SyncState): SyncStep {
  switch (state.kind) {
    case 'idle':
    case 'pending':
    case 'retrying':
    case 'error':
      return beginFlush('attempts' in state ? state.attempts : 0)
    case 'syncing':
      // The save in progress may have read files before the flush was requested.
      return stay({ ...state, isAwaited: true })
    case 'flushing':
      return stay({ ...state, isDirty: true })
  }
}

function onSaved(state: SyncState, tookMs: number, nowMs: number): SyncStep {
  if (state.kind === 'syncing' && state.isAwaited) return beginFlush(0)
  const isDirty = (state.kind === 'syncing' || state.kind === 'flushing') && state.isDirty
  return isDirty ? pending(nowMs, nowMs + tookMs * REST_FACTOR) : stay(IDLE)
}

function onFailed(state: SyncState, nowMs: number): SyncStep {
  const attempts = ('attempts' in state ? state.attempts : 0) + 1
  if (attempts >= MAX_ATTEMPTS) return stay({ kind: 'error', attempts, atMs: nowMs + ERROR_RETRY_MS })
  return stay({ kind: 'retrying', attempts, atMs: nowMs + doublingDelayMs(attempts, RETRIES) })
}

function isDue(state: SyncState, nowMs: number): boolean {
  const dueMs = nextSyncMs(state)
  return dueMs !== undefined && nowMs >= dueMs
}

/** When a save is due without a further event; undefined: never. */
export function nextSyncMs(state: SyncState): number | undefined {
  switch (state.kind) {
    case 'idle':
    case 'syncing':
    case 'flushing':
      return undefined
    case 'pending':
      return Math.max(state.notBeforeMs, Math.min(state.lastMs + QUIET_MS, state.firstMs + MAX_DELAY_MS))
    case 'retrying':
    case 'error':
      return state.atMs
  }
}
