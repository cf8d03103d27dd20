/** State of the connection. */
export type ConnectionState = 'connecting' | 'attached' | 'down'

export const TERMINATION_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const
export type TerminationSignal = (typeof TERMINATION_SIGNALS)[number]

/** This many signals within this time detach. */
const DETACH_COUNT = 3
const DETACH_WINDOW_MS = 3_000
/** While the connection is down, fewer are enough, at any time. */
const DETACH_COUNT_WHILE_DOWN = 2

/** Decides what a signal does without a terminal: it is forwarded, unless repeated. */
export class TerminationSignals {
  #recent: number[] = []
  #countWhileDown = 0

  receive(state: ConnectionState, canForward: boolean, nowMs: number): 'forward' | 'detach' {
    if (state === 'connecting' || !canForward) return 'detach'
    this.#countWhileDown = state === 'down' ? this.#countWhileDown + 1 : 0
    this.#recent = [...this.#recent.filter((atMs) => atMs > nowMs - DETACH_WINDOW_MS), nowMs]
    const isDetaching = this.#recent.length >= DETACH_COUNT || this.#countWhileDown >= DETACH_COUNT_WHILE_DOWN
    return isDetaching ? 'detach' : 'forward'
  }
}
