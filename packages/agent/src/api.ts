/**
 * The HTTP contract of sandboxd's agent routes. `:id` is the run's id, chosen by control (`RUN_ID`). All routes need the
 * authority `control`, except the event stream, which roles may read too, so that control can pass a viewer's upgrade through.
 * Errors have the usual body; codes are `not_found` (no such run in this sandbox), `conflict`, `bad_request` and those named below.
 *
 * `PUT /agents/:id` with an `AgentStart`: records the base, then starts the program. 201 with the `AgentView` as soon as the run
 * is in the journal, in state `preparing`; a program that cannot be started ends the run as `failed`. The same id with the same
 * body again: 200 with the current view, and nothing is started. With another body, or while another run has not ended: `conflict`;
 * runs that share may be at work at the same time. While the interface of an agent is open in a terminal: `agent_in_use`.
 *
 * `GET /agents`: `{ agents: AgentView[] }`, also those of earlier starts of the sandbox.
 *
 * `GET /agents/:id`: the `AgentView`.
 *
 * `GET /agents/:id/events?after=SEQ` (default 0: from the beginning), in three forms:
 * - Upgrade to WebSocket: text messages, each a `NumberedEvent` or a `Partial`. Everything after SEQ, then live. The server
 *   closes with 1000 after `complete`. Clients send nothing. A viewer that reads slowly gets its events from the journal and delays no one else.
 * - `Accept: text/event-stream`: `id: SEQ`, `event: TYPE`, `data: NumberedEvent`; partials as `event: partial` without id;
 *   a comment every 15 s. `Last-Event-ID` overrides `after`. Ends after `complete`.
 * - else JSON: `EventRange`, at most `limit` events (default and maximum 1000) and about 1 MiB. With `wait=SECONDS` (at most
 *   30) an empty range is answered when the next event is there.
 *
 * With `format=lines` the same three forms have the journal instead: `JournalEntry`, with numbers of its own, and `LineRange`; a
 * partial message is a `PartialLine`. `eventSeq` of an entry relates it to the events.
 *
 * `GET /agents/:id/claude-stream` upgrades to the messages of `/ws/claude-stream`; see `apps/sandboxd/src/compat/claude-codec.ts`.
 *
 * `POST /agents/:id/messages` with `{ id, text, by }`: `MessageView`. The same id and text again: the current receipt, and nothing
 * is sent. Another text: `conflict`. A run that is ending or has ended: `conflict`. In state `turn` the agent reads the message
 * beside its next tool result; no interrupt is needed.
 *
 * `POST /agents/:id/approvals` with an `ApprovalAnswer`: `ApprovalView`. The first answer is the only one. The same answer by the
 * same caller again: the same view. Another, or one after the deadline: `conflict`. Unknown request: `not_found`.
 *
 * `POST /agents/:id/interrupt` (no body): ends the turn; the view. The agent keeps its conversation and goes `idle`, with
 * `awaiting_input` of kind `message`. A run without an answer then ends by `idleMs` as `aborted`.
 *
 * `POST /agents/:id/stop` with `{ reason: EndStatus, message }`: interrupt, then end of input, TERM and KILL, then the diff; the
 * view, at once. The first reason stays. A run that has ended: the view, nothing else.
 *
 * `GET /agents/:id/result`: `RunResult`; `conflict` until the state is `ended`.
 *
 * `GET /agents/:id/diff`: the patch as bytes (`text/x-diff`), for `git apply --binary`; `conflict` until the state is `ended`,
 * `not_found` when the result has no diff.
 *
 * `GET /agents/:id/pack`: a git pack with the objects that the tree after the run has and the base does not; `not_found` when
 * `packBytes` of the result is null.
 *
 * `GET /agents/change?ref=BRANCH`: the workspace as a change of its repository, in which work began with that branch: a line with
 * the `WorkspaceChange`, then the pack if `diff.packBytes` is not null. `conflict` without a repository that has a commit of its
 * remote `origin`.
 *
 * `DELETE /agents/:id`: removes journal, base and diff of an ended run: 204. Else `conflict`.
 */
import { schema } from '@sandwire/protocol'
import {
  type AgentState,
  END_STATUSES,
  type EndStatus,
  type InputRequest,
  type MessageReceipt,
} from './event.ts'
import type { NumberedEvent, Usage } from './event.ts'
import type { JournalEntry } from './journal.ts'

export const RUN_ID = /^[A-Za-z0-9_-]{1,64}$/
/** Ids of messages and approvals. */
const REQUEST_ID = /^[A-Za-z0-9_.:-]{1,128}$/

export const MAX_TASK_CHARS = 256 * 1024
export const MAX_MESSAGE_CHARS = 64 * 1024
export const MAX_RANGE_EVENTS = 1000
export const MAX_WAIT_SECONDS = 30

/** Bounds of a run. Control fills in every one; sandboxd has no defaults of its own. */
const limitsSchema = schema.record({
  /** Without any output of the program. Time in which an approval is pending does not count. */
  idleMs: schema.integer(1, 24 * 3600_000),
  /** While it waits for a message; absent: `idleMs`. */
  restMs: schema.optional(schema.integer(1, 7 * 24 * 3600_000)),
  /** From the last result to the exit of the program. */
  exitMs: schema.integer(1, 3600_000),
  /** From the start of the program to its end. */
  wallClockMs: schema.integer(1, 7 * 24 * 3600_000),
  /** Until a pending approval is denied. */
  approvalMs: schema.integer(1, 7 * 24 * 3600_000),
  /** Requests to the model; null: any number. */
  maxTurns: schema.nullable(schema.integer(1, 100_000)),
  /** Millionths of a US dollar, as the agent counts; the gateway enforces its own. */
  maxBudgetMicroUsd: schema.nullable(schema.integer(1, Number.MAX_SAFE_INTEGER)),
  /** Between interrupt, end of input, TERM and KILL. */
  stepMs: schema.integer(1, 60_000),
})
export type AgentLimits = schema.Decoded<typeof limitsSchema>

export const DEFAULT_LIMITS: AgentLimits = {
  idleMs: 10 * 60_000,
  exitMs: 60_000,
  wallClockMs: 60 * 60_000,
  approvalMs: 10 * 60_000,
  maxTurns: null,
  maxBudgetMicroUsd: null,
  stepMs: 5_000,
}

const toolRules = schema.optional(schema.list(schema.text(1024, /^[^\p{Cc}]+$/u), 64))

/** Options of Claude Code that only sessions of `/ws/claude-stream` have. */
const claudeOptionsSchema = schema.record({
  /** Of a program that asks; absent: it asks about everything that changes something. */
  permissionMode: schema.optional(schema.oneOf(['acceptEdits', 'plan'])),
  /** Rules such as `Bash(git status)`: tools that need no permission, and tools that the agent does not get. */
  allowedTools: toolRules,
  disallowedTools: toolRules,
  maxThinkingTokens: schema.optional(schema.integer(0, 1_000_000)),
})
export type ClaudeOptions = schema.Decoded<typeof claudeOptionsSchema>

export const agentStartSchema = schema.record({
  /** What the program speaks: Claude's stream-json, or the Agent Client Protocol. */
  agent: schema.oneOf(['claude', 'acp']),
  /** Absolute path of the program in the sandbox, or a name on its PATH. */
  program: schema.text(4096),
  /** Arguments of the program; those of Claude are made here. */
  args: schema.optional(schema.list(schema.text(4096), 64)),
  /** The first message; empty: the program waits for one, which only Claude's does. Control joins task and context. */
  task: schema.text(MAX_TASK_CHARS),
  /** Added to the agent's own system prompt. */
  systemPrompt: schema.optional(schema.text(MAX_TASK_CHARS)),
  model: schema.optional(schema.text(128, /^[A-Za-z0-9._:/@[\]-]+$/)),
  /** `auto`: tools run without asking, and the agent cannot ask questions. `ask`: tools that change something ask first. */
  permission: schema.oneOf(['auto', 'ask']),
  /** The only tools that the agent has, such as `Read`; absent: all. */
  tools: schema.optional(schema.list(schema.text(256, /^[A-Za-z][A-Za-z0-9_]*$/), 64)),
  /** JSON Schema, as text, of `RunResult.structured`. */
  outputSchema: schema.optional(schema.text(32 * 1024)),
  /** True: the agent gets tools to open terminals and to use them together with people. */
  terminals: schema.optional(schema.bool),
  claude: schema.optional(claudeOptionsSchema),
  /** True: other runs that share may be at work in the sandbox at the same time. */
  shares: schema.optional(schema.bool),
  /** A conversation to continue. */
  resume: schema.optional(schema.text(128, /^[A-Za-z0-9][A-Za-z0-9_.:-]*$/)),
  /** True: it ends when it is idle and the agent is opened in a terminal. */
  yieldsToTui: schema.optional(schema.bool),
  /** True: the agent goes `idle` after a turn and takes further messages. False: the first finished turn ends the run. */
  isInteractive: schema.bool,
  /** Added to the environment of the program, and of nothing else. */
  env: schema.dictionary(64, /^[A-Za-z_][A-Za-z0-9_]{0,63}$/, schema.text(4096)),
  /** Texts that are replaced in every event; files with them are withheld from the diff. The run's grant is one. */
  secrets: schema.list(schema.text(4096), 32),
  /** Where sandboxd says that the run needs attention, with a `POST` and this bearer token; absent: nowhere. */
  wake: schema.optional(schema.record({ url: schema.text(256, /^http:\/\//), token: schema.text(4096) })),
  limits: limitsSchema,
})
/** What `PUT /agents/:id` takes. */
export type AgentStart = schema.Decoded<typeof agentStartSchema>

export const messageSchema = schema.record({
  id: schema.text(128, REQUEST_ID),
  text: schema.text(MAX_MESSAGE_CHARS),
  /** Account that sends it. */
  by: schema.text(256),
})
export type AgentMessage = schema.Decoded<typeof messageSchema>

export const approvalSchema = schema.record({
  requestId: schema.text(128, REQUEST_ID),
  decision: schema.oneOf(['allow', 'deny']),
  /** Told to the agent with a denial. */
  message: schema.optional(schema.text(MAX_MESSAGE_CHARS)),
  /** For kind `question`: chosen labels or own words, by question text. */
  answers: schema.optional(schema.dictionary(16, /^[^]{1,4096}$/, schema.text(MAX_MESSAGE_CHARS))),
  /** With `allow`: also allow edits of files for the rest of the run. For a plan this is always so. */
  acceptsEdits: schema.optional(schema.bool),
  /** With `allow`, for kind `permission`: JSON of the input with which the tool is called instead of its own. */
  updatedInput: schema.optional(schema.text(MAX_TASK_CHARS)),
  by: schema.text(256),
})
export type ApprovalAnswer = schema.Decoded<typeof approvalSchema>

export const stopSchema = schema.record({
  reason: schema.oneOf(END_STATUSES),
  message: schema.text(4096),
})
export type AgentStop = schema.Decoded<typeof stopSchema>

export interface MessageView {
  readonly id: string
  readonly receipt: MessageReceipt
}

/** `pending → answered | expired (denied) | withdrawn (by the agent, or by the end of the run)`. */
export interface ApprovalView {
  readonly requestId: string
  readonly state: 'pending' | 'answered' | 'expired' | 'withdrawn'
  readonly decision: 'allow' | 'deny' | null
  readonly by: string | null
}

/** A run as its sandbox sees it. */
export interface AgentView {
  readonly run: string
  /** Random, made with the journal: another value means that the events before are gone. */
  readonly journal: string
  readonly state: AgentState
  /** Sequence number of the last event. */
  readonly lastSeq: number
  readonly startedMs: number
  readonly endedMs: number | null
  /** Set once the run is being ended. */
  readonly reason: EndStatus | null
  /** Why, as text for people. */
  readonly message: string | null
  readonly agentSessionId: string | null
  readonly model: string | null
  readonly usage: Usage
  /** Pending requests only. */
  readonly approvals: readonly InputRequest[]
  /** False where the agent's user can write sandboxd's files, and so could have changed events and base. */
  readonly isTamperProof: boolean
}

/** What `GET /agents/:id/events` answers as JSON. */
export interface EventRange {
  readonly journal: string
  readonly state: AgentState
  readonly events: readonly NumberedEvent[]
  /** Sequence number of the last event that exists. */
  readonly lastSeq: number
}

/** What `GET /agents/:id/events?format=lines` answers as JSON. */
export interface LineRange {
  readonly journal: string
  readonly state: AgentState
  readonly lines: readonly JournalEntry[]
  /** Sequence number of the last entry that exists. */
  readonly lastSeq: number
}

/** The tree before the run. */
export interface BaseTree {
  /** Git tree hash (SHA-1) of the files that the run began with: tracked ones, and others that are not ignored. */
  readonly treeHash: string
  /** `HEAD` at the start; null without a repository or without a commit. */
  readonly commit: string | null
  /** True when the files were exactly those of `commit`. */
  readonly isCommit: boolean
}

/** What a run returns, also after a timeout, limit, abort or crash. */
export interface RunResult {
  readonly status: EndStatus
  /** Why it ended, when it did not complete. */
  readonly message: string | null
  /** The agent's last words. */
  readonly summary: string
  /** The agent's output by `outputSchema`; null without one or when it failed. */
  readonly structured: unknown
  readonly exitCode: number | null
  readonly signal: string | null
  readonly base: BaseTree | null
  /** Null when the diff could not be made; `diffProblem` says why. */
  readonly diff: DiffFacts | null
  readonly diffProblem: string | null
  readonly usage: Usage
  readonly agentSessionId: string | null
  readonly model: string | null
  readonly isTamperProof: boolean
  readonly startedMs: number
  readonly endedMs: number
}

/** What a commit needs that has the files of the workspace. All of it is what the sandbox says. */
export interface WorkspaceChange {
  /** URL of the remote, as the repository has it. */
  readonly remote: string
  /** The newest commit that the remote has on a branch that is not an agent's. */
  readonly parent: string
  /** Branch of the remote that the current branch follows, unless it is an agent's. */
  readonly branch: string | null
  readonly diff: DiffFacts
}

/** About the patch of `GET /agents/:id/diff`. Paths are relative to the workspace; bytes that are not UTF-8 are lone surrogates, as in all file routes. */
export interface DiffFacts {
  readonly bytes: number
  readonly sha256: string
  /** Size of the pack from which a commit can be made; null when the base is no commit, nothing changed, or it is too large. */
  readonly packBytes: number | null
  /** Git tree hash after the run: the patch applied to the base gives exactly this tree. */
  readonly treeHash: string
  readonly files: readonly ChangedFile[]
  /** Changed or new files that ignore rules hide which the run itself added. */
  readonly ignored: readonly string[]
  /** Changed submodules: what is inside them is not in the patch. */
  readonly submodules: readonly string[]
  /** Changed files that contain a secret of the run: tree and patch have them as they were in the base. */
  readonly withheld: readonly string[]
  /** Files that could not be read, and what a tree cannot express: sockets, pipes, devices. */
  readonly unreadable: readonly string[]
}

export interface ChangedFile {
  readonly path: string
  readonly action: 'create' | 'modify' | 'delete' | 'rename'
  readonly from?: string
  /** Lines; null for binary files. */
  readonly added: number | null
  readonly removed: number | null
}
