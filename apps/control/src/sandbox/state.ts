import type { SandboxStatus } from '@sandwire/internal-api'

/** Where a sandbox is in its life. */
export type SandboxState =
  /** Being brought up. */
  | { readonly is: 'creating' }
  | {
      readonly is: 'running'
      /** Where the provider reaches its sandboxd. */
      readonly address: string
      /** Differs for every start. */
      readonly epoch: string
      readonly startedMs: number
      /** Protocol version of its sandboxd, once it was asked. */
      readonly protocol?: number
    }
  /** Being taken down. */
  | { readonly is: 'stopping' }
  /** Not running; files are kept as the provider declares. `reason` when nobody asked for it. */
  | { readonly is: 'stopped'; readonly reason?: string }
  /** The last start did not work. */
  | { readonly is: 'failed'; readonly reason: string }

export type SandboxEvent =
  | { readonly type: 'start' }
  | { readonly type: 'startFailed'; readonly reason: string }
  | { readonly type: 'stop' }
  | { readonly type: 'stopFailed' }
  /** The provider said how it is. */
  | { readonly type: 'observed'; readonly status: SandboxStatus }
  /** Its sandboxd said which protocol it speaks. */
  | { readonly type: 'greeted'; readonly epoch: string; readonly protocol: number }

/** What the object does about it, in order. */
export type SandboxEffect =
  /** Ask the provider to start it. */
  | 'start'
  /** Ask the provider to stop it. */
  | 'stop'
  /** Keep the alarm going. */
  | 'watch'
  /** Let the object sleep. */
  | 'rest'
  /** Tell the account's index. */
  | 'publish'

export interface Step {
  readonly state: SandboxState
  readonly effects: readonly SandboxEffect[]
}

const stay = (state: SandboxState): Step => ({ state, effects: [] })

function observe(state: SandboxState, status: SandboxStatus): Step {
  if (status.state === 'running') {
    const { address, epoch, startedMs } = status
    const isSame = state.is === 'running' && state.epoch === epoch && state.address === address
    if (isSame) return stay(state)
    return { state: { is: 'running', address, epoch, startedMs }, effects: ['watch', 'publish'] }
  }
  const reason = status.state === 'stopped' ? status.reason : undefined
  if (state.is === 'stopped' && (reason === undefined || reason === state.reason)) return stay(state)
  // What failed to start is not there either; the failure says more.
  if (state.is === 'failed') return stay(state)
  return {
    state: { is: 'stopped', ...(reason === undefined ? {} : { reason }) },
    effects: ['rest', 'publish'],
  }
}

/** What an event makes of a state. */
export function step(state: SandboxState, event: SandboxEvent): Step {
  switch (event.type) {
    case 'start':
      // Also in `creating`: an object that was evicted in the middle asks again, and starting is idempotent.
      return state.is === 'running'
        ? stay(state)
        : { state: { is: 'creating' }, effects: ['watch', 'publish', 'start'] }
    case 'startFailed':
      return { state: { is: 'failed', reason: event.reason }, effects: ['rest', 'publish'] }
    case 'stop':
      return state.is === 'stopped'
        ? stay(state)
        : { state: { is: 'stopping' }, effects: ['publish', 'stop'] }
    case 'stopFailed':
      // Nobody knows how it is; the alarm finds out.
      return { state, effects: ['watch'] }
    case 'observed':
      return observe(state, event.status)
    case 'greeted':
      return state.is === 'running' && state.epoch === event.epoch
        ? stay({ ...state, protocol: event.protocol })
        : stay(state)
  }
}
