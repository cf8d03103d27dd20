/** How a process ended; exactly one of `code` and `signal` is set. */
export interface ProcessExit {
  readonly code: number | null
  readonly signal: string | null
  readonly truncated: boolean
}

/** Where the session is in its life. */
export type SessionState =
  /** Created; the process starts at the first hello. */
  | { readonly is: 'pending'; readonly sinceMs: number }
  | { readonly is: 'running' }
  | { readonly is: 'exited'; readonly exit: ProcessExit; readonly atMs: number }
  | { readonly is: 'gone' }

/** How far the session is in its life, and the times its clocks count from. */
export class SessionLifecycle {
  #state: SessionState
  /** Since when no attachment has a connection; null while one has. */
  #idleSinceMs: number | null
  /** Until when a connection that was asked to come back is waited for. */
  #returnExpectedUntilMs = Number.NEGATIVE_INFINITY
  /** Set once the session is to end: when that was decided. */
  #endingSinceMs: number | null = null
  #lastInputMs: number | null = null
  #lastOutputMs: number | null = null
  readonly createdMs: number

  constructor(nowMs: number) {
    this.#state = { is: 'pending', sinceMs: nowMs }
    this.#idleSinceMs = nowMs
    this.createdMs = nowMs
  }

  get state(): SessionState {
    return this.#state
  }

  get idleSinceMs(): number | null {
    return this.#idleSinceMs
  }

  /** When a session that nobody comes back to ends; undefined while somebody is there. */
  idleEndMs(keepSeconds: number): number | undefined {
    if (this.#idleSinceMs === null) return undefined
    return Math.max(this.#idleSinceMs + keepSeconds * 1000, this.#returnExpectedUntilMs)
  }

  get endingSinceMs(): number | null {
    return this.#endingSinceMs
  }

  get lastInputMs(): number | null {
    return this.#lastInputMs
  }

  get lastOutputMs(): number | null {
    return this.#lastOutputMs
  }

  recordInput(nowMs: number): void {
    this.#lastInputMs = nowMs
  }

  recordOutput(nowMs: number): void {
    this.#lastOutputMs = nowMs
  }

  /** The process is being started. */
  run(): void {
    this.#state = { is: 'running' }
  }

  /** The process has ended; a session without connections is kept anew from now. */
  exit(exit: ProcessExit, nowMs: number): void {
    this.#state = { is: 'exited', exit, atMs: nowMs }
    if (this.#idleSinceMs !== null) this.#idleSinceMs = nowMs
  }

  /** An attachment has a connection. */
  markActive(): void {
    this.#idleSinceMs = null
  }

  /** The last attachment lost its connection. */
  markIdle(nowMs: number): void {
    this.#idleSinceMs = nowMs
  }

  /** Somebody was asked to come back. */
  expectReturn(untilMs: number): void {
    this.#returnExpectedUntilMs = Math.max(this.#returnExpectedUntilMs, untilMs)
  }

  /** Decides that the session ends; false when that was decided before. */
  beginEnding(nowMs: number): boolean {
    if (this.#endingSinceMs !== null || this.#state.is === 'gone') return false
    this.#endingSinceMs = nowMs
    return true
  }

  endSession(): void {
    this.#state = { is: 'gone' }
  }
}
