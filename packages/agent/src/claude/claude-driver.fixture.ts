import { type AgentStart, DEFAULT_LIMITS } from '../api.ts'
import type { AgentDriver, DriverEffect, DriverInput } from '../driver.ts'
import type { RunEvent } from '../event.ts'
import type { JournalEntry, RecordedInput } from '../journal.ts'
import { ClaudeDriver, type ClaudeDriverOptions } from './claude-driver.ts'

export const SECRET = 'grant-0123456789'

/** A driver at a simulated time, with what it has emitted, written and signaled. */
export class DrivenAgent {
  readonly options: ClaudeDriverOptions
  readonly driver: AgentDriver
  readonly journal: JournalEntry[] = []
  readonly events: RunEvent[] = []
  readonly effects: DriverEffect[] = []
  nowMs = 1_000

  constructor(
    start: Partial<Omit<AgentStart, 'limits'>> & { readonly limits?: Partial<AgentStart['limits']> } = {},
    Driver: new (options: ClaudeDriverOptions) => AgentDriver = ClaudeDriver,
  ) {
    this.options = {
      start: {
        agent: 'claude',
        program: 'claude',
        task: 'Do it',
        permission: 'auto',
        isInteractive: false,
        env: {},
        secrets: [SECRET],
        ...start,
        limits: { ...DEFAULT_LIMITS, ...start.limits },
      },
      workspace: '/workspace',
      epochMs: 1_000_000,
      nonce: '0123456789abcdef0123',
    }
    this.driver = new Driver(this.options)
  }

  on(input: DriverInput): readonly DriverEffect[] {
    const effects = this.driver.on(input, this.nowMs)
    this.effects.push(...effects)
    for (const effect of effects) {
      if (effect.kind === 'emit') this.events.push(effect.event)
      if (effect.kind === 'record') this.#store(effect.input)
    }
    return effects
  }

  #store(input: RecordedInput): void {
    const { nowMs } = this
    const seq = this.journal.length + 1
    const entry = { seq, atMs: nowMs, nowMs, eventSeq: this.events.length, ...input }
    this.journal.push(JSON.parse(JSON.stringify(entry)) as JournalEntry)
  }

  line(value: unknown): readonly DriverEffect[] {
    return this.on({ kind: 'line', text: typeof value === 'string' ? value : JSON.stringify(value) })
  }

  /** Starts the program and its first turn. */
  begin(): void {
    this.on({ kind: 'started' })
    this.line({ type: 'system', subtype: 'init', session_id: 's', model: 'm', claude_code_version: '2' })
  }

  /** Advances the time, with a tick at each deadline on the way. */
  wait(ms: number): void {
    const endMs = this.nowMs + ms
    let ticks = 0
    for (let due = this.driver.deadlineMs; due !== undefined && due <= endMs; due = this.driver.deadlineMs) {
      this.nowMs = Math.max(this.nowMs, due)
      this.on({ kind: 'tick' })
      ticks += 1
      if (ticks > 1_000) throw new Error('The deadline does not pass')
    }
    this.nowMs = endMs
  }

  /** What was written to the program, parsed. */
  get written(): readonly Record<string, unknown>[] {
    return this.effects.flatMap((effect) =>
      effect.kind === 'write' ? [JSON.parse(effect.line) as Record<string, unknown>] : [],
    )
  }

  /** How the program was ended so far. */
  get steps(): readonly string[] {
    return this.effects.flatMap((effect) => {
      if (effect.kind === 'end_input') return ['end_input']
      if (effect.kind === 'signal') return [effect.name]
      if (
        effect.kind === 'write' &&
        effect.line.includes('"interrupt"') &&
        effect.line.includes('control_request')
      )
        return ['interrupt']
      return []
    })
  }

  eventsOf<T extends RunEvent['type']>(type: T): readonly Extract<RunEvent, { type: T }>[] {
    return this.events.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type)
  }
}

export const text = (content: string, id = 'msg'): object => ({
  type: 'assistant',
  parent_tool_use_id: null,
  message: { id, content: [{ type: 'text', text: content }], usage: { input_tokens: 5, output_tokens: 1 } },
})

export const toolUse = (id: string, name: string, input: object): object => ({
  type: 'assistant',
  parent_tool_use_id: null,
  message: { id: `msg-${id}`, content: [{ type: 'tool_use', id, name, input }] },
})

export const toolResult = (id: string, content: unknown, result?: object, isError = false): object => ({
  type: 'user',
  parent_tool_use_id: null,
  message: { content: [{ type: 'tool_result', tool_use_id: id, content, is_error: isError }] },
  tool_use_result: result,
})

export const result = (fields: object = {}): object => ({
  type: 'result',
  subtype: 'success',
  is_error: false,
  result: 'Done',
  total_cost_usd: 0.5,
  ...fields,
})

export const permission = (requestId: string, name: string, input: object = {}): object => ({
  type: 'control_request',
  request_id: requestId,
  request: { subtype: 'can_use_tool', tool_name: name, input },
})
