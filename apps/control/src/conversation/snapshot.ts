import type { AgentState, InputRequest } from '@sandwire/agent'
import type { Turn } from '../run/turns.ts'
import type { OpaqueJson, WaitingMessage } from './frames.ts'

/** Who sent a frame. */
export interface Sender {
  /** Names the socket in effects. */
  readonly socket: string
  readonly account: string
  readonly name: string
}

/** Control itself; it gets no frames. */
export const CONTROL: Sender = { socket: '', account: '', name: '' }

export interface QueuedMessage {
  readonly id: string
  readonly text: string
  readonly by: string
  readonly atMs: number
}

/** An answer that was accepted, until the sandbox has it. */
export interface GivenAnswer {
  readonly requestId: string
  readonly decision: 'allow' | 'deny'
  readonly by: string
  readonly message?: string
  readonly answers?: Readonly<Record<string, string>>
  readonly acceptsEdits?: boolean
  /** JSON. */
  readonly updatedInput?: string
}

interface OpenRequest {
  readonly requestId: string
  readonly kind: Exclude<InputRequest['kind'], 'message'>
  readonly deadlineMs: number | null
  /** Of a permission. */
  readonly tool?: string
  readonly answer: GivenAnswer | null
  readonly isDelivered: boolean
}

/** The agent's program in the sandbox. `run` names it and its journal; each start has a new one. */
export type ProgramState =
  | { readonly kind: 'none' }
  /** It is being started with the first message of the queue. */
  | {
      readonly kind: 'starting'
      readonly run: string
      readonly first: string
      /** Another agent works in the sandbox. */
      readonly isBlocked?: boolean
    }
  /** It works, and its events are read through a socket. */
  | {
      readonly kind: 'working'
      readonly run: string
      /** The last event that was read. */
      readonly seq: number
      readonly agent: AgentState
      readonly isOpen: boolean
      /** The last event after which the sandbox was asked whether the agent rests. */
      readonly checkedSeq: number | null
      /** Set until it has begun a conversation: the message that is lost if it cannot. */
      readonly first: QueuedMessage | null
    }
  /** It waits for a person, and nothing is connected. `wakeMs`: when it goes on by itself. */
  | {
      readonly kind: 'resting'
      readonly run: string
      readonly seq: number
      readonly agent: AgentState
      readonly wakeMs: number | null
    }

/** A tool that a person has allowed for the rest of the conversation. */
export interface AllowedTool {
  readonly name: string
  readonly by: string
}

/** A restore of the files that was requested and is not done. */
export interface Restore {
  readonly key: string
  /** The message that was named; null: the last restore is undone. */
  readonly message: string | null
  readonly version: number
  readonly atMs: number
  readonly by: string
  readonly byName: string
}

/** Sent to the agent with its next message: the files were restored to those at a message, or a restore was undone (null). */
export interface RestoreNotice {
  readonly message: string | null
  /** False: the sandbox could not be reached in the end, so it may not have happened. */
  readonly isSure: boolean
}

/** What is stored of a conversation beside its entries. */
export interface ConversationSnapshot {
  readonly lastSeq: number
  readonly isStarted: boolean
  readonly systemPrompt: string | null
  /** Ids of the client's own, for stored messages. */
  readonly labels: OpaqueJson
  readonly queue: readonly QueuedMessage[]
  /** Messages that wait for the end of the turn. */
  readonly waiting: readonly WaitingMessage[]
  /** Waiting messages stay until a person sends one. */
  readonly isPaused: boolean
  readonly allowedTools: readonly AllowedTool[]
  /** Messages that were acknowledged; a repeated id gets the same response. */
  readonly known: readonly { readonly id: string; readonly seq: number }[]
  readonly requests: readonly OpenRequest[]
  readonly program: ProgramState
  readonly starts: number
  /** Conversation of the agent, which the next start continues. */
  readonly resume: string | null
  /** Text of the turn so far. */
  readonly turn: { readonly text: string; readonly tokens: number } | null
  readonly tokens: number
  readonly wantsInterrupt: boolean
  readonly wantsClose: boolean
  /** Whether the sandbox exists and has stored that an agent works in it. */
  readonly isPinned: boolean
  /** Programs that are not needed any more: stopped if they run, and deleted from the sandbox. */
  readonly ended: readonly string[]
  /** Nothing is tried before. */
  readonly retryMs: number
  /** Messages with the files that are kept for them. */
  readonly turns: readonly Turn[]
  readonly restore: Restore | null
  /** Versions of the files before each restore, newest last. */
  readonly undoVersions: readonly number[]
  readonly notice: RestoreNotice | null
  /** The last notice, and the message with which the agent got it: it may not have read them. */
  readonly sentNotice: { readonly id: string; readonly notice: RestoreNotice } | null
}

export const NEW_CONVERSATION: ConversationSnapshot = {
  lastSeq: 0,
  isStarted: false,
  systemPrompt: null,
  labels: {},
  queue: [],
  waiting: [],
  isPaused: false,
  allowedTools: [],
  known: [],
  requests: [],
  program: { kind: 'none' },
  starts: 0,
  resume: null,
  turn: null,
  tokens: 0,
  wantsInterrupt: false,
  wantsClose: false,
  isPinned: false,
  ended: [],
  retryMs: 0,
  turns: [],
  restore: null,
  undoVersions: [],
  notice: null,
  sentNotice: null,
}
