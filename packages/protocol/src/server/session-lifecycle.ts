/** How a process ended; exactly one of `code` and `signal` is set. */
export interface ProcessExit {
  readonly code: number | null
  readonly signal: string | null
  readonly truncated: boolean
}

export type SessionState =
  /** Created; the process starts at the first hello. */
  | { readonly kind: 'pending'; readonly sinceMs: number }
  | { readonly kind: 'running' }
  | { readonly kind: 'exited'; readonly exit: ProcessExit; readonly atMs: number }
  | { readonly kind: 'gone' }

/** The state of a session, and the times that its timeouts count from. */
export class SessionLifecycle {
  #state: SessionState
  /** Since when no attachment is connected; null while one is. */
  #idleSinceMs: number | null
  /** When an attachment was last connected. */
  #attachedMs = Number.NEGATIVE_INFINITY
  /** Until when a client that was told to reconnect is expected. */
  #returnExpectedUntilMs = Number.NEGATIVE_INFINITY
  /** When the session began to end; null before. */
  #endingSinceMs: number | null = null
  #lastInputMs: number | null = null
  #lastOutputMs: number | null = null
  readonly createdMs: number

  constructor(nowMs: number) {
    this.#state = { kind: 'pending', sinceMs: nowMs }
    this.#idleSinceMs = nowMs
    this.createdMs = nowMs
  }

  get state(): SessionState {
    return this.#state
  }

  get idleSinceMs(): number | null {
    return this.#idleSinceMs
  }

  /** When a session without connections ends; undefined while an attachment is connected. */
  idleEndMs(keepSeconds: number): number | undefined {
    if (this.#idleSinceMs === null) return undefined
    return Math.max(this.#idleSinceMs + keepSeconds * 1000, this.#returnExpectedUntilMs)
  }

  get endingSinceMs(): number | null {
    return this.#endingSinceMs
  }

  /** True once the session ends: its process is terminated, so nothing more may attach. */
  get isOver(): boolean {
    return this.#endingSinceMs !== null || this.#state.kind === 'gone'
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
    this.#state = { kind: 'running' }
  }

  /** The process has exited. A session without connections is kept for its full time from now. */
  exit(exit: ProcessExit, nowMs: number): void {
    this.#state = { kind: 'exited', exit, atMs: nowMs }
    if (this.#idleSinceMs !== null) this.#idleSinceMs = nowMs
  }

  /** An attachment was connected. */
  markActive(nowMs: number): void {
    this.#idleSinceMs = null
    this.#attachedMs = nowMs
  }

  /** Since when a session with connections has had neither input nor output; undefined without connections. */
  get quietSinceMs(): number | undefined {
    if (this.#idleSinceMs !== null) return undefined
    return Math.max(this.#attachedMs, this.#lastInputMs ?? 0, this.#lastOutputMs ?? 0)
  }

  /** The last connected attachment has disconnected. */
  markIdle(nowMs: number): void {
    this.#idleSinceMs = nowMs
  }

  /** A client was told to reconnect by then. */
  expectReturn(untilMs: number): void {
    this.#returnExpectedUntilMs = Math.max(this.#returnExpectedUntilMs, untilMs)
  }

  /** Starts to end the session; false when that has started before. */
  beginEnding(nowMs: number): boolean {
    if (this.#endingSinceMs !== null || this.#state.kind === 'gone') return false
    this.#endingSinceMs = nowMs
    return true
  }

  end(): void {
    this.#state = { kind: 'gone' }
  }
}
