import type { AgentStart, ApprovalAnswer, ApprovalView } from '../api.ts'
import { Approvals } from '../approvals.ts'
import type { DriverInput } from '../driver.ts'
import type { DriverOutput } from '../driver-output.ts'
import type { InputRequest } from '../event.ts'
import { type Json, parseRecord, recordAt, textAt } from '../json.ts'
import { QUESTION_TOOL } from './command.ts'
import { describeRequest, requestKind } from './input-request.ts'
import { ACCEPT_EDITS, allowLine, denyLine, unsupportedLine } from './outgoing.ts'

/** Ids that an answer can name. */
const REQUEST_ID = /^[A-Za-z0-9_.:-]{1,128}$/

interface PendingTool {
  readonly name: string
  /** As the program sent it: the answer repeats it. */
  readonly input: Json
}

/** A decision about a tool. */
export type ToolAnswer = Omit<ApprovalAnswer, 'by'> & { readonly permissions?: readonly Json[] }

/** The line with the answer of a person to a request to call a tool. */
export function answerLine({ name, input }: PendingTool, answer: ToolAnswer): string {
  const { requestId, decision, message, answers, updatedInput, acceptsEdits, permissions = [] } = answer
  if (decision === 'deny') return denyLine(requestId, message ?? 'The user denied this.')
  const kind = requestKind(name)
  const own = kind === 'permission' ? parseRecord(updatedInput ?? '') : undefined
  const updated = kind === 'question' ? { ...input, answers: answers ?? {} } : (own ?? input)
  const canEdit = kind === 'plan' || acceptsEdits === true
  return allowLine(requestId, updated, canEdit ? [ACCEPT_EDITS, ...permissions] : permissions)
}

export interface PermissionOptions {
  readonly start: AgentStart
  /** Wall time at which `nowMs` is zero. */
  readonly epochMs: number
  readonly output: DriverOutput
}

/** Answers the program's requests to call tools: at once in a run without approvals, otherwise as a user decides. */
export class PermissionRequests {
  readonly #options: PermissionOptions
  readonly #approvals = new Approvals<PendingTool>()

  constructor(options: PermissionOptions) {
    this.#options = options
  }

  get pending(): readonly InputRequest[] {
    return this.#approvals.pending
  }

  get deadlineMs(): number | undefined {
    return this.#approvals.deadlineMs
  }

  view(requestId: string): ApprovalView | undefined {
    return this.#approvals.view(requestId)
  }

  /** A control request of the program: as it came, and as it may be shown. */
  requested(line: Json, shownLine: Json, isEnding: boolean, nowMs: number): void {
    const { start, output } = this.#options
    const request = recordAt(line, 'request')
    const requestId = textAt(line, 'request_id') ?? ''
    if (textAt(request, 'subtype') !== 'can_use_tool' || !REQUEST_ID.test(requestId))
      return output.write(unsupportedLine(requestId))
    const tool = { name: textAt(request, 'tool_name') ?? '', input: recordAt(request, 'input') ?? {} }
    if (isEnding) return this.#deny(requestId, 'The user interrupted this.')
    if (start.permission === 'ask')
      return this.#ask(requestId, tool, recordAt(recordAt(shownLine, 'request'), 'input') ?? {}, nowMs)
    if (tool.name === QUESTION_TOOL)
      return this.#deny(requestId, 'Questions cannot be answered in this run. Decide yourself and go on.')
    output.write(allowLine(requestId, tool.input, tool.name === 'ExitPlanMode' ? [ACCEPT_EDITS] : []))
  }

  approve(answer: Extract<DriverInput, { kind: 'approval' }>): void {
    const { output } = this.#options
    const decided = this.#approvals.answer(answer)
    if (decided === undefined) return
    const { requestId } = decided.request
    output.approval(requestId, answer.decision, answer.by)
    output.write(answerLine(decided.context, answer))
  }

  /** Denies the requests whose deadline has passed. */
  expire(nowMs: number): void {
    for (const { request, context } of this.#approvals.expire(nowMs)) {
      this.#options.output.approval(request.requestId, 'expired')
      this.#deny(request.requestId, `There was no answer in time, so ${context.name} was denied.`)
    }
  }

  /** The program, or the end of the run, withdraws a request, or all. */
  withdraw(requestId?: string): void {
    for (const request of this.#approvals.withdraw(requestId))
      this.#options.output.approval(request.requestId, 'withdrawn')
  }

  #ask(requestId: string, tool: PendingTool, input: Json, nowMs: number): void {
    const { start, epochMs, output } = this.#options
    const deadlineMs = nowMs + start.limits.approvalMs
    const request = describeRequest({ requestId, name: tool.name, input }, Math.round(epochMs + deadlineMs))
    if (!this.#approvals.add(request, deadlineMs, tool)) return this.#deny(requestId, 'Too many requests.')
    output.emit({ type: 'awaiting_input', ...request })
  }

  #deny(requestId: string, message: string): void {
    this.#options.output.write(denyLine(requestId, message))
  }
}
