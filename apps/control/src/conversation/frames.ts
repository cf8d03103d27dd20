import { schema } from '@sandwire/protocol'
import type { RestorePointsView } from '../run/turns.ts'

/** Longest text of a message. */
export const MAX_MESSAGE_CHARS = 64 * 1024
const MAX_PROMPT_CHARS = 64 * 1024
/** Largest frame that is parsed. */
const MAX_FRAME_CHARS = 512 * 1024

const REQUEST_ID = /^[A-Za-z0-9_.:-]{1,128}$/
const requestId = schema.text(128, REQUEST_ID)
const optionalText = (maxChars: number) => schema.optional(schema.text(maxChars))

/** An object of the agent's or the client's own. */
const opaque: schema.Schema<OpaqueJson> = {
  decode: (value) =>
    typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as OpaqueJson) : undefined,
  describe: 'object',
}

/** A frame of browsers. Clients of an earlier server send further fields, and null for absent ones: they are ignored. */
function frame<const F extends Parameters<typeof schema.record>[0]>(
  fields: F,
): schema.Schema<schema.RecordOf<F>> {
  const { decode, describe } = schema.record(fields)
  return {
    decode: (raw) => {
      if (typeof raw !== 'object' || raw === null) return undefined
      const known = Object.entries(raw).filter(
        ([name, value]) => value !== null && Object.hasOwn(fields, name),
      )
      return decode(Object.fromEntries(known))
    },
    describe,
  }
}

/** Frames that browsers send. `start`, `message` and the two answers are those of an earlier server. */
const start = frame({
  type: schema.literal('start'),
  /** Repeats the query; not used. */
  sessionId: optionalText(256),
  systemPrompt: optionalText(MAX_PROMPT_CHARS),
  /** Ids of the client's own task and project; passed on with stored messages. */
  taskId: optionalText(256),
  projectId: optionalText(256),
  /** The first message. */
  content: optionalText(MAX_MESSAGE_CHARS),
  id: schema.optional(requestId),
})
const message = frame({
  type: schema.literal('message'),
  content: schema.text(MAX_MESSAGE_CHARS),
  /** A repeated frame with the same id is not stored again. */
  id: schema.optional(requestId),
  /** While the agent works: waits for the end of the turn, and can be changed until then. */
  whenIdle: schema.optional(schema.bool),
})
/** Changes a message that waits for the end of the turn. */
const messageEdit = frame({
  type: schema.literal('message_edit'),
  id: requestId,
  content: schema.text(MAX_MESSAGE_CHARS),
})
const messageRemove = frame({ type: schema.literal('message_remove'), id: requestId })
/** Gives the agent a waiting message without waiting for the end of the turn. */
const messageNow = frame({ type: schema.literal('message_now'), id: requestId })
const permissionResponse = frame({
  type: schema.literal('permission_response'),
  requestId,
  decision: schema.oneOf(['allow', 'deny']),
  /** Input with which the tool is called instead of its own. */
  modifiedInput: schema.optional(opaque),
  /** Told to the agent with a denial. */
  message: optionalText(MAX_MESSAGE_CHARS),
  /** Also allow edits of files from now on. */
  acceptsEdits: schema.optional(schema.bool),
  /** Also allow every further call of this tool. */
  always: schema.optional(schema.bool),
})
/** Ask again before calls of a tool that was always allowed. */
const forgetTool = frame({ type: schema.literal('forget_tool'), toolName: schema.text(256) })
const askUserAnswer = frame({
  type: schema.literal('ask_user_answer'),
  requestId,
  answers: schema.dictionary(16, /^[^]{1,4096}$/, schema.text(MAX_MESSAGE_CHARS)),
})
/** Ends the agent's turn; it keeps its conversation. */
const interrupt = frame({ type: schema.literal('interrupt') })
/** Ends the agent's program; the next message starts it again. */
const close = frame({ type: schema.literal('close') })

export type ClientFrame =
  | schema.Decoded<typeof start>
  | schema.Decoded<typeof message>
  | schema.Decoded<typeof messageEdit>
  | schema.Decoded<typeof messageRemove>
  | schema.Decoded<typeof messageNow>
  | schema.Decoded<typeof forgetTool>
  | schema.Decoded<typeof permissionResponse>
  | schema.Decoded<typeof askUserAnswer>
  | schema.Decoded<typeof interrupt>
  | schema.Decoded<typeof close>

const DECODERS: readonly schema.Schema<ClientFrame>[] = [
  start,
  message,
  messageEdit,
  messageRemove,
  messageNow,
  forgetTool,
  permissionResponse,
  askUserAnswer,
  interrupt,
  close,
]

/** Decodes a frame; undefined when it is malformed. */
export function decodeClientFrame(text: string): ClientFrame | undefined {
  if (text.length > MAX_FRAME_CHARS) return undefined
  try {
    const value: unknown = JSON.parse(text)
    for (const { decode } of DECODERS) {
      const frame = decode(value)
      if (frame !== undefined) return frame
    }
  } catch {
    // Not JSON.
  }
  return undefined
}

/** The id of the message in a frame: a refusal names it, so that its sender does not wait for an answer. */
export function messageIdOf(data: string | ArrayBuffer): string | undefined {
  const frame = typeof data === 'string' ? decodeClientFrame(data) : undefined
  return frame?.type === 'message' || frame?.type === 'start' ? frame.id : undefined
}

/** JSON of the agent that is passed on. */
export type OpaqueJson = Readonly<Record<string, unknown>>

/** Frames that are stored: what a browser that connects later sees too. Sent with `seq` and `atMs`. */
export type StoredFrame =
  | {
      readonly type: 'user_message'
      readonly id: string
      readonly content: string
      readonly by: string
      readonly byName: string
    }
  /** A message that could not be given to the agent. */
  | {
      readonly type: 'message_dropped'
      readonly id: string
      readonly reason: 'expired' | 'failed' | 'canceled'
      readonly message: string
    }
  | { readonly type: 'sdk_message'; readonly message: OpaqueJson }
  | {
      readonly type: 'tool_permission_request'
      readonly requestId: string
      readonly toolName: string
      readonly toolInput: unknown
      readonly title: string
      readonly deadlineMs: number | null
    }
  | {
      readonly type: 'ask_user_question'
      readonly requestId: string
      readonly questions: readonly OpaqueJson[]
      readonly deadlineMs: number | null
    }
  /** A request was answered, by a person or by its deadline, or the agent has withdrawn it. */
  | {
      readonly type: 'request_resolved'
      readonly requestId: string
      readonly outcome: 'allow' | 'deny' | 'expired' | 'withdrawn'
      readonly by: string | null
      readonly byName: string | null
      /** To questions. */
      readonly answers?: Readonly<Record<string, string>>
      /** The reason of a denial. */
      readonly message?: string
    }
  /** The list, a plan or a changed file of the agent, as in the events of runs. */
  | { readonly type: 'agent_event'; readonly event: OpaqueJson }
  | {
      readonly type: 'done'
      readonly messageId: string
      readonly metadata: { readonly tokensUsed: number; readonly stopReason: string }
    }
  | { readonly type: 'error'; readonly code: string; readonly message: string }
  /** The files became those of the time at which a message was sent; null: the last restore was undone. */
  | {
      readonly type: 'files_restored'
      readonly message: string | null
      readonly version: number
      readonly by: string
      readonly byName: string
    }

/** Frames about the current state; not stored. */
export type LiveFrame =
  /** The first frame. */
  | {
      readonly type: 'connected'
      readonly conversationId: string
      readonly sessionId: string
      readonly sandbox: string
    }
  | { readonly type: 'connection_status'; readonly sandboxStatus: SandboxStatus }
  | { readonly type: 'session_status'; readonly status: string }
  /** The agent has a message, and nothing of its answer has come yet. */
  | { readonly type: 'agent_status'; readonly status: 'pending' }
  /** Sent after the history, and whenever it changes. */
  | ConversationStateFrame
  | ({ readonly type: 'restore_points' } & RestorePointsView)
  /** The message is stored. `seq` is null while it waits for the end of the turn. */
  | { readonly type: 'message_ack'; readonly id: string; readonly seq: number | null }
  /** The frame was refused; nothing of it is stored. */
  | { readonly type: 'error'; readonly code: string; readonly message: string; readonly id?: string }
  /** All stored frames were sent; what follows is live. */
  | { readonly type: 'history_end'; readonly seq: number }
  | { readonly type: 'sdk_message'; readonly message: OpaqueJson }

/** Whether the agent can be reached. `disconnected`: nothing is connected, because the agent rests; a message connects. */
export type SandboxStatus = 'connecting' | 'connected' | 'disconnected'

/** What an agent is doing. `idle`: it takes a message, whether or not its program runs. `restoring`: files are being restored. */
export type Activity = 'new' | 'idle' | 'starting' | 'working' | 'awaiting' | 'restoring'

/** What clients show beside the entries. */
export interface ConversationStateFrame {
  readonly type: 'conversation_state'
  readonly state: Activity
  /** True while it starts and another agent works in the sandbox. */
  readonly isBlocked: boolean
  /** Messages that wait for the end of the turn, in order. */
  readonly waiting: readonly WaitingMessage[]
  /** True after a stop: waiting messages stay until a person sends one. */
  readonly isPaused: boolean
  /** Tools that the agent calls without asking. */
  readonly allowedTools: readonly string[]
}

export interface WaitingMessage {
  readonly id: string
  readonly content: string
  readonly by: string
  readonly byName: string
}

/** A stored frame with its number. */
export interface ConversationEntry {
  readonly seq: number
  readonly atMs: number
  readonly frame: StoredFrame
}

/** A range of a conversation's entries. */
export interface EntryRange {
  readonly entries: readonly ConversationEntry[]
  readonly lastSeq: number
}
