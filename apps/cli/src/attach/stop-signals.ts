/** Where the connection is, as far as a signal is concerned. */
export type ConnectionState = 'connecting' | 'attached' | 'down'

export const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const
export type StopSignal = (typeof STOP_SIGNALS)[number]

/** So many signals within this time mean that somebody wants out. */
const DETACH_COUNT = 3
const DETACH_WINDOW_MS = 3_000
/** While the link is down nothing can be seen to happen, so it takes fewer, whenever they come. */
const DETACH_COUNT_WHILE_DOWN = 2

/** Decides what a signal to this program means when there is no terminal: it is the remote's, unless repeated. */
export class StopSignals {
  #recent: number[] = []
  #sinceDown = 0

  receive(state: ConnectionState, canForward: boolean, nowMs: number): 'forward' | 'leave' {
    if (state === 'connecting' || !canForward) return 'leave'
    this.#sinceDown = state === 'down' ? this.#sinceDown + 1 : 0
    this.#recent = [...this.#recent.filter((atMs) => atMs > nowMs - DETACH_WINDOW_MS), nowMs]
    const isDetaching = this.#recent.length >= DETACH_COUNT || this.#sinceDown >= DETACH_COUNT_WHILE_DOWN
    return isDetaching ? 'leave' : 'forward'
  }
}
