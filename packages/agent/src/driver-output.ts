import type { DriverEffect } from './driver.ts'
import type { AgentState, RunEvent, Status, Usage } from './event.ts'
import type { SentMessage } from './messages.ts'
import type { Redactor } from './redact.ts'

/** Collects the effects of one input, and knows the state that was reported last. */
export class DriverOutput {
  readonly #redactor: Redactor
  #effects: DriverEffect[] = []
  #lastUsage = ''
  #state: AgentState = 'preparing'

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  get state(): AgentState {
    return this.#state
  }

  take(): readonly DriverEffect[] {
    const effects = this.#effects
    this.#effects = []
    return effects
  }

  push(...effects: readonly DriverEffect[]): void {
    this.#effects.push(...effects)
  }

  emit(...events: readonly RunEvent[]): void {
    for (const event of events) this.#effects.push({ kind: 'emit', event })
  }

  write(line: string): void {
    this.#effects.push({ kind: 'write', line })
  }

  enter(state: AgentState): void {
    if (this.#state === state) return
    this.#state = state
    this.emit({ type: 'status', status: 'state', state })
  }

  /** Leaves out what was reported already. */
  usage(usage: Usage): void {
    const text = JSON.stringify(usage)
    if (text === this.#lastUsage) return
    this.#lastUsage = text
    this.emit({ type: 'usage', ...usage })
  }

  warn(message: string): void {
    this.emit({ type: 'status', status: 'warning', message })
  }

  message({ id, text, by, receipt }: SentMessage): void {
    this.emit({ type: 'status', status: 'message', id, text: this.#redactor.text(text), by, receipt })
  }

  approval(
    requestId: string,
    outcome: Extract<Status, { status: 'approval' }>['outcome'],
    by: string | null = null,
  ): void {
    this.emit({ type: 'status', status: 'approval', requestId, outcome, by })
  }
}
