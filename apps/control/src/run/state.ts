import { type AgentState, type EndStatus } from '@sandwire/agent'

/** How a run ended. `lost`: its files are gone, so that there is no diff. */
export const OUTCOMES = [
  'completed',
  'failed',
  'aborted',
  'timed_out',
  'budget',
  'crashed',
  'lost',
] as const satisfies readonly (EndStatus | 'lost')[]
export type RunOutcome = (typeof OUTCOMES)[number]

/** What is done before the agent works, in order. Each step can be repeated after a crash. */
export type Preparation = 'sandbox' | 'clone' | 'agent'

/** Why a run is stopped, by control or by the agent's watchdogs. */
export type StopReason = Exclude<EndStatus, 'completed'>

/** Lifecycle of a run. */
export type RunState =
  /** Waits for room below the ceilings of the account and the machine. */
  | { readonly kind: 'queued' }
  | { readonly kind: 'preparing'; readonly step: Preparation }
  /** The agent works. */
  | { readonly kind: 'running' }
  /** The agent waits for an approval or a message. */
  | { readonly kind: 'awaiting' }
  /** The agent is being stopped. `message` is text for people. */
  | { readonly kind: 'stopping'; readonly why: StopReason; readonly message: string }
  /**
   * The agent has ended, or never started; result and diff are fetched. `outcome` is known when control decided it; absent: the
   * sandbox's result has it.
   */
  | { readonly kind: 'collecting'; readonly outcome?: RunOutcome; readonly message?: string }
  | {
      readonly kind: 'ended'
      readonly outcome: RunOutcome
      readonly endedMs: number
      readonly message?: string
    }

export type RunInput =
  /** The account and the machine have room. */
  | { readonly type: 'admitted' }
  /** The sandbox could not be started for lack of room; the run waits again. */
  | { readonly type: 'no_room' }
  /** A step of the preparation is done. */
  | { readonly type: 'prepared'; readonly step: Exclude<Preparation, 'agent'> }
  /** A step of the preparation failed for good. */
  | { readonly type: 'cannot_prepare'; readonly message: string }
  /** The sandbox reported the state of the agent. */
  | {
      readonly type: 'observed'
      readonly agent: AgentState
      readonly reason: EndStatus | null
      readonly message: string | null
    }
  /** A user, a limit of control or an operator ends the run. */
  | { readonly type: 'stop'; readonly why: StopReason; readonly message: string }
  /** The sandbox does not know the run: its files are gone, or the agent was never started there. */
  | { readonly type: 'missing' }
  /** Result and diff are stored. */
  | {
      readonly type: 'collected'
      readonly outcome: RunOutcome
      readonly nowMs: number
      readonly message?: string
    }

/** True when the agent may have been started. */
function hasAgent(state: RunState): boolean {
  switch (state.kind) {
    case 'running':
    case 'awaiting':
    case 'stopping':
    case 'collecting':
      return true
    case 'preparing':
      return state.step === 'agent'
    case 'queued':
    case 'ended':
      return false
  }
}

function observe(
  state: RunState,
  { agent, reason, message }: Extract<RunInput, { type: 'observed' }>,
): RunState {
  if (!hasAgent(state)) return state
  switch (agent) {
    case 'preparing':
    case 'starting':
      return state
    case 'turn':
      return state.kind === 'stopping' || state.kind === 'collecting' ? state : { kind: 'running' }
    case 'awaiting':
    case 'idle':
      return state.kind === 'stopping' || state.kind === 'collecting' ? state : { kind: 'awaiting' }
    case 'ending':
      if (state.kind === 'stopping' || state.kind === 'collecting') return state
      return reason === null || reason === 'completed'
        ? { kind: 'running' }
        : { kind: 'stopping', why: reason, message: message ?? '' }
    case 'collecting':
    case 'ended':
      return state.kind === 'collecting' ? state : { kind: 'collecting' }
  }
}

function stop(state: RunState, why: StopReason, message: string): RunState {
  switch (state.kind) {
    case 'queued':
      return { kind: 'collecting', outcome: why, message }
    case 'preparing':
      // A request that starts the agent may be under way; stopping finds out.
      return state.step === 'agent'
        ? { kind: 'stopping', why, message }
        : { kind: 'collecting', outcome: why, message }
    case 'running':
    case 'awaiting':
      return { kind: 'stopping', why, message }
    // The first reason stays.
    case 'stopping':
    case 'collecting':
    case 'ended':
      return state
  }
}

function toLost(state: RunState): RunState {
  // A run that is stopped before its agent started has lost nothing.
  if (state.kind === 'stopping') return { kind: 'collecting', outcome: state.why, message: state.message }
  if (state.kind === 'collecting' && state.outcome !== undefined) return state
  return hasAgent(state)
    ? { kind: 'collecting', outcome: 'lost', message: 'The files of the run are gone' }
    : state
}

/** The next state. Inputs that do not fit the state change nothing. */
export function step(state: RunState, input: RunInput): RunState {
  switch (input.type) {
    case 'admitted':
      return state.kind === 'queued' ? { kind: 'preparing', step: 'sandbox' } : state
    case 'no_room':
      return state.kind === 'preparing' && state.step === 'sandbox' ? { kind: 'queued' } : state
    case 'prepared': {
      if (state.kind !== 'preparing' || state.step !== input.step) return state
      return { kind: 'preparing', step: input.step === 'sandbox' ? 'clone' : 'agent' }
    }
    case 'cannot_prepare':
      return state.kind === 'preparing' || state.kind === 'queued'
        ? { kind: 'collecting', outcome: 'failed', message: input.message }
        : state
    case 'observed':
      return observe(state, input)
    case 'stop':
      return stop(state, input.why, input.message)
    case 'missing':
      return toLost(state)
    case 'collected':
      return state.kind === 'collecting'
        ? {
            kind: 'ended',
            outcome: input.outcome,
            endedMs: input.nowMs,
            ...(input.message === undefined ? {} : { message: input.message }),
          }
        : state
  }
}

/** True once the run takes up a place below the ceilings. */
export function isActive({ kind }: RunState): boolean {
  return kind !== 'queued' && kind !== 'ended'
}

/** True while the agent takes messages, approvals and interrupts. */
export function isSteerable({ kind }: RunState): boolean {
  return kind === 'running' || kind === 'awaiting'
}
