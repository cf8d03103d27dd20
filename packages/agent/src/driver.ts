import type { AgentMessage, AgentStop, ApprovalAnswer, ApprovalView, MessageView } from './api.ts'
import type { AgentState, EndStatus, InputRequest, Partial, RunEvent, Usage } from './event.ts'
import type { RecordedInput } from './journal.ts'
import type { Json } from './json.ts'

/** A setting of Claude Code, as it is sent to the program. */
export type AgentSetting =
  | { readonly subtype: 'set_permission_mode'; readonly mode: 'default' | 'acceptEdits' | 'plan' }
  | { readonly subtype: 'set_model'; readonly model: string }
  | { readonly subtype: 'set_max_thinking_tokens'; readonly max_thinking_tokens: number | null }

/** What happens to an agent's program, and what people ask of it. */
export type DriverInput =
  /** The program runs. */
  | { readonly kind: 'started' }
  /** The program could not be started. */
  | { readonly kind: 'not_started'; readonly message: string }
  /** A line of its stdout. `isCut`: the line was too long, and this is its beginning. */
  | { readonly kind: 'line'; readonly text: string; readonly isCut?: boolean }
  /** Text of its stderr. */
  | { readonly kind: 'stderr'; readonly text: string }
  /** It has exited, after its last line. */
  | { readonly kind: 'exit'; readonly code: number | null; readonly signal: string | null }
  /** `deadlineMs` has been reached, or may have been. */
  | { readonly kind: 'tick' }
  /** `content`: blocks in the agent's own format, which are sent in place of the text. */
  | ({ readonly kind: 'message'; readonly content?: readonly Json[] } & AgentMessage)
  /** `permissions`: rules in the agent's own format that an allowed request adds for the rest of the session. */
  | ({ readonly kind: 'approval'; readonly permissions?: readonly Json[] } & ApprovalAnswer)
  /** Changes a setting of the program while it runs. Only Claude's has such. */
  | { readonly kind: 'setting'; readonly setting: AgentSetting }
  | { readonly kind: 'interrupt' }
  | ({ readonly kind: 'stop' } & AgentStop)

export type DriverEffect =
  /** Goes into the journal, before the events that follow from it. */
  | { readonly kind: 'record'; readonly input: RecordedInput }
  | { readonly kind: 'emit'; readonly event: RunEvent }
  /** Goes to live viewers only. */
  | { readonly kind: 'partial'; readonly partial: Partial['partial'] }
  /** A line of a partial message, redacted. Goes to live viewers of lines only. */
  | { readonly kind: 'partial_line'; readonly line: Json }
  /** A line for the program's stdin, without the line feed. */
  | { readonly kind: 'write'; readonly line: string }
  | { readonly kind: 'end_input' }
  /** To the process group; KILL ends the whole process tree. */
  | { readonly kind: 'signal'; readonly name: 'SIGTERM' | 'SIGKILL' }

/** How an agent's program ended, and what it left. */
export interface Outcome {
  readonly status: EndStatus
  readonly message: string | null
  readonly summary: string
  readonly structured: unknown
  readonly exitCode: number | null
  readonly signal: string | null
}

/** The state machine of one agent. Reads no clock, does no I/O, and never throws on what the program writes. */
export interface AgentDriver {
  /** Throws a `SandwireError` only for a message, an approval or an interrupt that it refuses, without having changed anything. */
  on(input: DriverInput, nowMs: number): readonly DriverEffect[]
  /** When `tick` is due, in the time of `nowMs`. */
  readonly deadlineMs: number | undefined
  readonly state: AgentState
  /** Set once the program has ended. */
  readonly outcome: Outcome | undefined
  /** Set once the run is being ended. */
  readonly stopping: AgentStop | undefined
  readonly usage: Usage
  readonly agentSessionId: string | null
  readonly model: string | null
  readonly pendingApprovals: readonly InputRequest[]
  /** Paths that events have named, so that the final list of changes does not repeat them. */
  readonly announcedFiles: ReadonlyMap<string, 'create' | 'modify'>
  messageView(id: string): MessageView | undefined
  approvalView(requestId: string): ApprovalView | undefined
}
