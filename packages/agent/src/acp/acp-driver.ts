import type { ApprovalView, MessageView } from '../api.ts'
import { ClaudeDriver, type ClaudeDriverOptions } from '../claude/claude-driver.ts'
import type { AgentDriver, DriverEffect, DriverInput, Outcome } from '../driver.ts'
import type { AgentState, InputRequest, Usage } from '../event.ts'
import { type Json, parseRecord } from '../json.ts'
import type { ToolServer } from '../tool-server.ts'
import { AcpTranslator, type Translated } from './acp-translator.ts'

/**
 * Speaks the Agent Client Protocol with a program. Its state machine is `ClaudeDriver`'s, with every line translated; the journal has
 * the translated lines, so that events are derived from it as for Claude.
 */
export class AcpDriver implements AgentDriver {
  readonly #inner: ClaudeDriver
  readonly #translator: AcpTranslator

  /** `toolServers` is read when the program's session begins. */
  constructor(options: ClaudeDriverOptions, toolServers: () => readonly ToolServer[] = () => []) {
    this.#inner = new ClaudeDriver(options)
    const { resume, systemPrompt } = options.start
    this.#translator = new AcpTranslator({
      workspace: options.workspace,
      resume,
      systemPrompt,
      toolServers,
    })
  }

  on(input: DriverInput, nowMs: number): readonly DriverEffect[] {
    const line = input.kind === 'line' && input.isCut !== true ? parseRecord(input.text) : undefined
    if (line === undefined) return this.#translate(this.#inner.on(input, nowMs), nowMs)
    return this.#perform(this.#translator.fromProgram(line), nowMs)
  }

  get deadlineMs(): number | undefined {
    return this.#inner.deadlineMs
  }

  get state(): AgentState {
    return this.#inner.state
  }

  get outcome(): Outcome | undefined {
    return this.#inner.outcome
  }

  get stopping(): AgentDriver['stopping'] {
    return this.#inner.stopping
  }

  get usage(): Usage {
    return this.#inner.usage
  }

  get agentSessionId(): string | null {
    return this.#inner.agentSessionId
  }

  get model(): string | null {
    return this.#inner.model
  }

  get pendingApprovals(): readonly InputRequest[] {
    return this.#inner.pendingApprovals
  }

  get announcedFiles(): ReadonlyMap<string, 'create' | 'modify'> {
    return this.#inner.announcedFiles
  }

  messageView(id: string): MessageView | undefined {
    return this.#inner.messageView(id)
  }

  approvalView(requestId: string): ApprovalView | undefined {
    return this.#inner.approvalView(requestId)
  }

  /** Effects of the inner driver, with its lines for Claude as lines for the program. What follows from those comes after the rest. */
  #translate(effects: readonly DriverEffect[], nowMs: number): readonly DriverEffect[] {
    const translated: DriverEffect[] = []
    const answers: Json[] = []
    for (const effect of effects) {
      const line = effect.kind === 'write' ? parseRecord(effect.line) : undefined
      if (line === undefined) {
        translated.push(effect)
        continue
      }
      const { toDriver, toProgram } = this.#translator.fromDriver(line)
      translated.push(...toProgram.map(writeEffect))
      answers.push(...toDriver)
    }
    return [...translated, ...answers.flatMap((line) => this.#give(line, nowMs))]
  }

  #perform({ toDriver, toProgram }: Translated, nowMs: number): readonly DriverEffect[] {
    return [...toProgram.map(writeEffect), ...toDriver.flatMap((line) => this.#give(line, nowMs))]
  }

  #give(line: Json, nowMs: number): readonly DriverEffect[] {
    return this.#translate(this.#inner.on({ kind: 'line', text: JSON.stringify(line) }, nowMs), nowMs)
  }
}

function writeEffect(line: string): DriverEffect {
  return { kind: 'write', line }
}
