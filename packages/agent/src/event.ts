/**
 * What a run reports. Events are derived from the run's journal and numbered from 1 without gaps.
 * Texts are redacted. `complete` is the last event of every run; the only event before it that is always there is `result`.
 */
export type RunEvent =
  /** Text for people from the agent: its messages as they are finished. Never the agent's JSON. */
  | { readonly type: 'stdout'; readonly data: string }
  /** Text that the program wrote to its stderr, and lines of its stdout that are not of its protocol. */
  | { readonly type: 'stderr'; readonly data: string }
  /** The last event. `exitCode` is null when the program was killed, never started, or its sandboxd died. */
  | { readonly type: 'complete'; readonly exitCode: number | null; readonly signal: string | null }
  /** The whole todo list, each time it changes. `active` is what the agent says it is doing. */
  | { readonly type: 'todo'; readonly items: readonly TodoItem[]; readonly active?: string }
  /** A plan that the agent proposes. `steps` are its list items; `text` is the whole plan as Markdown. */
  | {
      readonly type: 'plan'
      readonly steps: readonly PlanStep[]
      readonly current?: number
      readonly text: string
    }
  /** A path relative to the workspace. Creations and edits by the agent's own tools come at once, all others before `result`. */
  | FileChange
  /** The agent waits for a person; see `InputRequest`. */
  | ({ readonly type: 'awaiting_input' } & InputRequest)
  /** The result of the run, after its processes have ended; see `RunResult`. */
  | ResultEvent
  /** One finished block of the model's text. `thinking` blocks are summaries of its reasoning. */
  | { readonly type: 'text'; readonly text: string; readonly thinking?: true; readonly subagent?: string }
  /** The agent calls a tool. `title` is one line for people. `input` is cut to `MAX_INPUT_CHARS` of JSON. */
  | {
      readonly type: 'tool_call'
      readonly id: string
      readonly name: string
      readonly title: string
      readonly input: unknown
      readonly subagent?: string
    }
  /** Result of a tool call, cut to `MAX_TOOL_RESULT_CHARS`; `omittedChars` is what was cut. `name` is the tool's. */
  | {
      readonly type: 'tool_result'
      readonly id: string
      readonly name?: string
      readonly isError: boolean
      readonly content: string
      readonly omittedChars?: number
      readonly subagent?: string
    }
  /** Tokens of the run so far, as the agent counts them. The gateway's count is authoritative. */
  | ({ readonly type: 'usage' } & Usage)
  | ({ readonly type: 'status' } & Status)

export type RunEventType = RunEvent['type']

export interface FileChange {
  readonly type: 'file_change'
  readonly path: string
  readonly action: 'create' | 'modify' | 'delete' | 'rename'
  /** Old path of a rename. */
  readonly from?: string
}

export interface ResultEvent {
  readonly type: 'result'
  /** Empty when it is larger than `MAX_EVENT_DIFF_BYTES` or is not UTF-8; `isDiffOmitted` then is true and `…/diff` has it. */
  readonly diff: string
  readonly isDiffOmitted: boolean
  readonly summary: string
  readonly filesChanged: readonly string[]
  readonly status: EndStatus
  readonly treeHash: string | null
}

export interface TodoItem {
  readonly id: string
  readonly content: string
  readonly status: 'pending' | 'in_progress' | 'completed'
}

export interface PlanStep {
  readonly title: string
  readonly status: 'pending' | 'in_progress' | 'completed'
}

/** What the agent waits for. */
export interface InputRequest {
  /** One line for people. */
  readonly prompt: string
  /** Names the request in the answer. */
  readonly requestId: string
  /**
   * `permission`: may it call this tool. `question`: choose among options. `plan`: accept the plan. These three are answered by
   * an approval. `message`: the agent's turn has ended and it takes a message; `requestId` is then the turn's.
   */
  readonly kind: 'permission' | 'question' | 'plan' | 'message'
  /** When a pending approval is denied by itself, in milliseconds since the epoch; null for `message`. */
  readonly deadlineMs: number | null
  readonly tool?: { readonly name: string; readonly title: string; readonly input: unknown }
  readonly questions?: readonly Question[]
}

export interface Question {
  /** Also the key of the answer. */
  readonly question: string
  readonly header: string
  readonly allowsMany: boolean
  readonly options: readonly { readonly label: string; readonly description: string }[]
}

export interface Usage {
  readonly turns: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  /** Null until the agent has stated its cost, which it does at the end of a turn. */
  readonly costUsd: number | null
}

/** Changes that are none of the above. */
export type Status =
  /** State of the agent. */
  | { readonly status: 'state'; readonly state: AgentState }
  /** A conversation of the agent began; `agentSessionId` resumes it. */
  | {
      readonly status: 'session'
      readonly agentSessionId: string
      readonly model: string
      readonly version: string
    }
  /** The model API failed and is tried again. */
  | {
      readonly status: 'retry'
      readonly attempt: number
      readonly maxAttempts: number
      readonly httpStatus: number | null
    }
  /** A message of a person; sent again whenever its receipt changes. */
  | {
      readonly status: 'message'
      readonly id: string
      readonly text: string
      readonly by: string
      readonly receipt: MessageReceipt
    }
  /** An approval is no longer pending. */
  | {
      readonly status: 'approval'
      readonly requestId: string
      readonly outcome: 'allow' | 'deny' | 'expired' | 'withdrawn'
      readonly by: string | null
    }
  /** The run is being ended. */
  | { readonly status: 'stopping'; readonly reason: EndStatus; readonly message: string }
  /** A part of the agent's output was not understood, was too long, or could not be stored. */
  | { readonly status: 'warning'; readonly message: string }

/**
 * `preparing` (the base is recorded) → `starting` (the program runs, no answer yet) → `turn` ⇄ `awaiting` (an approval is
 * pending) → `idle` (takes a message) → `turn` … → `ending` (stdin closed, or it is being stopped) → `collecting` (the program
 * has ended; the diff is made) → `ended`.
 */
export type AgentState =
  | 'preparing'
  | 'starting'
  | 'turn'
  | 'awaiting'
  | 'idle'
  | 'ending'
  | 'collecting'
  | 'ended'

/** How a run ended in the sandbox. Control adds `lost`. */
export const END_STATUSES = ['completed', 'failed', 'aborted', 'timed_out', 'budget', 'crashed'] as const
export type EndStatus = (typeof END_STATUSES)[number]

/** `queued`: written to the agent. `started`: the model has it. `completed`: its turn has ended. `canceled`: dropped. */
export type MessageReceipt = 'queued' | 'started' | 'completed' | 'canceled'

/** A journal entry, and what every stream of events carries. */
export interface NumberedEvent {
  readonly seq: number
  /** Wall time in milliseconds since the epoch. */
  readonly atMs: number
  readonly event: RunEvent
}

/** Text of a message that is being written. Sent to live viewers that keep up, and stored nowhere. */
export interface Partial {
  readonly partial: {
    readonly kind: 'text' | 'thinking' | 'input'
    /** The API's id of the message; text of an id that is cut off may come again under another id. */
    readonly messageId: string
    readonly text: string
    readonly subagent?: string
  }
}

export const MAX_TOOL_RESULT_CHARS = 32 * 1024
export const MAX_INPUT_CHARS = 32 * 1024
export const MAX_TEXT_CHARS = 256 * 1024
export const MAX_EVENT_DIFF_BYTES = 256 * 1024
