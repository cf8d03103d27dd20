import { titleOf, type RunEvent } from '@sandwire/agent'
import type { Activity } from '../api/conversations.ts'
import type { TranscriptEntry } from './transcript.ts'

type Fields = Readonly<Record<string, unknown>>

/** What a frame of the server means for the page. */
export type Received =
  /** A stored frame. */
  | { readonly kind: 'entry'; readonly entry: TranscriptEntry }
  /** A stored frame that the transcript does not show. */
  | { readonly kind: 'seen'; readonly seq: number }
  | { readonly kind: 'partial'; readonly text: string; readonly isThinking: boolean }
  | { readonly kind: 'state'; readonly state: ConversationState }
  | { readonly kind: 'connection'; readonly status: SandboxStatus }
  | { readonly kind: 'files'; readonly status: string }
  | { readonly kind: 'restore_points'; readonly points: RestorePoints }
  | { readonly kind: 'acknowledged'; readonly id: string }
  /** The frame with this id was refused. */
  | { readonly kind: 'refused'; readonly id: string | undefined; readonly message: string }
  | { readonly kind: 'history_end' }

export type SandboxStatus = 'connecting' | 'connected' | 'disconnected'

/** What the server states beside the entries. */
export interface ConversationState {
  readonly state: Activity
  /** Another agent works in the sandbox. */
  readonly isBlocked: boolean
  /** Messages that wait for the end of the turn. */
  readonly waiting: readonly WaitingMessage[]
  /** They stay until a person sends one. */
  readonly isPaused: boolean
  /** Tools that the agent calls without asking. */
  readonly allowedTools: readonly string[]
}

/** Files to which the workspace can be restored. */
export interface RestorePoints {
  /** Versions of the files, by the message before which they were saved; oldest first. */
  readonly versions: ReadonlyMap<string, number>
  readonly canUndo: boolean
  /** Why the files were not saved for the last message: a code, or null. */
  readonly problem: string | null
}

export interface WaitingMessage {
  readonly id: string
  readonly text: string
  readonly by: string
}

const ACTIVITIES: readonly string[] = [
  'new',
  'idle',
  'starting',
  'working',
  'awaiting',
  'restoring',
] satisfies Activity[]
const STATUSES: readonly string[] = ['connecting', 'connected', 'disconnected'] satisfies SandboxStatus[]

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function fieldsAt(fields: Fields, name: string): Fields {
  const value = fields[name]
  return isFields(value) ? value : {}
}

function textAt(fields: Fields, name: string): string {
  const value = fields[name]
  return typeof value === 'string' ? value : ''
}

function listAt(fields: Fields, name: string): readonly Fields[] {
  const value = fields[name]
  return Array.isArray(value) ? value.filter(isFields) : []
}

function optionalNumber(fields: Fields, name: string): number | null {
  const value = fields[name]
  return typeof value === 'number' ? value : null
}

/** Decodes a frame; undefined for one that is malformed or that this page does not know. */
export function readFrame(text: string): Received | undefined {
  let frame: unknown
  try {
    frame = JSON.parse(text)
  } catch {
    // Not of this protocol.
    return undefined
  }
  if (!isFields(frame)) return undefined
  const { seq } = frame
  if (typeof seq === 'number' && frame['type'] !== 'history_end' && frame['type'] !== 'message_ack') {
    const event = toEvent(frame)
    return event === undefined ? { kind: 'seen', seq } : { kind: 'entry', entry: { seq, event } }
  }
  return readLive(frame)
}

function readLive(frame: Fields): Received | undefined {
  switch (frame['type']) {
    case 'sdk_message':
      return readPartial(fieldsAt(frame, 'message'))
    case 'conversation_state':
      return readState(frame)
    case 'connection_status': {
      const status = textAt(frame, 'sandboxStatus')
      return STATUSES.includes(status) ? { kind: 'connection', status: status as SandboxStatus } : undefined
    }
    case 'session_status':
      return { kind: 'files', status: textAt(frame, 'status') }
    case 'restore_points':
      return { kind: 'restore_points', points: readPoints(frame) }
    case 'message_ack':
      return { kind: 'acknowledged', id: textAt(frame, 'id') }
    case 'error': {
      const id = frame['id']
      return {
        kind: 'refused',
        id: typeof id === 'string' ? id : undefined,
        message: textAt(frame, 'message'),
      }
    }
    case 'history_end':
      return { kind: 'history_end' }
    default:
      return undefined
  }
}

function readState(frame: Fields): Received | undefined {
  const state = textAt(frame, 'state')
  if (!ACTIVITIES.includes(state)) return undefined
  const tools: unknown = frame['allowedTools']
  return {
    kind: 'state',
    state: {
      state: state as Activity,
      isBlocked: frame['isBlocked'] === true,
      waiting: listAt(frame, 'waiting').map((message) => ({
        id: textAt(message, 'id'),
        text: textAt(message, 'content'),
        by: textAt(message, 'byName'),
      })),
      isPaused: frame['isPaused'] === true,
      allowedTools: Array.isArray(tools) ? tools.filter((tool) => typeof tool === 'string') : [],
    },
  }
}

function readPoints(frame: Fields): RestorePoints {
  const turns = listAt(frame, 'turns')
  const versions = turns.flatMap((turn): [string, number][] => {
    const version = optionalNumber(turn, 'version')
    return version === null ? [] : [[textAt(turn, 'message'), version]]
  })
  const problem = textAt(turns.at(-1) ?? {}, 'problem')
  return {
    versions: new Map(versions),
    canUndo: frame['canUndo'] === true,
    problem: problem === '' ? null : problem,
  }
}

function readPartial(message: Fields): Received | undefined {
  // Agents that help the agent write at the same time.
  if (typeof message['parent_tool_use_id'] === 'string') return undefined
  const delta = fieldsAt(fieldsAt(message, 'event'), 'delta')
  switch (delta['type']) {
    case 'text_delta':
      return { kind: 'partial', text: textAt(delta, 'text'), isThinking: false }
    case 'thinking_delta':
      return { kind: 'partial', text: textAt(delta, 'thinking'), isThinking: true }
    default:
      return undefined
  }
}

/** What a stored frame adds to the transcript. */
function toEvent(frame: Fields): TranscriptEntry['event'] | undefined {
  switch (frame['type']) {
    case 'user_message':
      return {
        type: 'user_message',
        id: textAt(frame, 'id'),
        text: textAt(frame, 'content'),
        by: textAt(frame, 'byName'),
      }
    case 'message_dropped':
      return { type: 'message_dropped', id: textAt(frame, 'id'), problem: textAt(frame, 'message') }
    case 'files_restored': {
      const { message } = frame
      return {
        type: 'files_restored',
        message: typeof message === 'string' ? message : null,
        by: textAt(frame, 'byName'),
      }
    }
    case 'sdk_message':
      return toContent(fieldsAt(frame, 'message'))
    case 'agent_event':
      return toAgentEvent(fieldsAt(frame, 'event'))
    case 'tool_permission_request':
      return toPermission(frame)
    case 'ask_user_question':
      return toQuestion(frame)
    case 'request_resolved': {
      const outcome = textAt(frame, 'outcome')
      if (!isOutcome(outcome)) return undefined
      const by = textAt(frame, 'byName')
      const message = textAt(frame, 'message')
      return {
        type: 'request_resolved',
        requestId: textAt(frame, 'requestId'),
        outcome,
        by: by === '' ? null : by,
        answers: textsIn(fieldsAt(frame, 'answers')),
        ...(message === '' ? {} : { message }),
      }
    }
    case 'done':
      return { type: 'turn_ended' }
    case 'error':
      return { type: 'agent_error', message: textAt(frame, 'message') }
    default:
      return undefined
  }
}

function textsIn(fields: Fields): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.keys(fields).map((name) => [name, textAt(fields, name)]))
}

type ApprovalOutcome = 'allow' | 'deny' | 'expired' | 'withdrawn'

function isOutcome(text: string): text is ApprovalOutcome {
  return ['allow', 'deny', 'expired', 'withdrawn'].includes(text)
}

/** A message of the agent has one block. */
function toContent(message: Fields): RunEvent | undefined {
  const [block] = listAt(fieldsAt(message, 'message'), 'content')
  if (block === undefined) return undefined
  const subagent = textAt(message, 'parent_tool_use_id')
  const common = subagent === '' ? {} : { subagent }
  switch (block['type']) {
    case 'text':
      return { type: 'text', text: textAt(block, 'text'), ...common }
    case 'thinking':
      return { type: 'text', text: textAt(block, 'thinking'), thinking: true, ...common }
    case 'tool_use': {
      const name = textAt(block, 'name')
      const input = fieldsAt(block, 'input')
      return {
        type: 'tool_call',
        id: textAt(block, 'id'),
        name,
        title: titleOf(name, input),
        input,
        ...common,
      }
    }
    case 'tool_result':
      return {
        type: 'tool_result',
        id: textAt(block, 'tool_use_id'),
        isError: block['is_error'] === true,
        content: textAt(block, 'content'),
        ...common,
      }
    default:
      return undefined
  }
}

/** Lists, plans and changed files come as the events of runs. */
function toAgentEvent(event: Fields): RunEvent | undefined {
  switch (event['type']) {
    case 'todo': {
      const active = textAt(event, 'active')
      const items = listAt(event, 'items').map((item) => ({
        id: textAt(item, 'id'),
        content: textAt(item, 'content'),
        status: statusOf(item),
      }))
      return { type: 'todo', items, ...(active === '' ? {} : { active }) }
    }
    case 'plan':
      return { type: 'plan', steps: [], text: textAt(event, 'text') }
    case 'file_change':
      return { type: 'file_change', path: textAt(event, 'path'), action: 'modify' }
    default:
      return undefined
  }
}

function statusOf(item: Fields): 'pending' | 'in_progress' | 'completed' {
  const status = item['status']
  return status === 'in_progress' || status === 'completed' ? status : 'pending'
}

function toPermission(frame: Fields): RunEvent {
  const name = textAt(frame, 'toolName')
  const title = textAt(frame, 'title')
  const isPlan = name === 'ExitPlanMode'
  return {
    type: 'awaiting_input',
    requestId: textAt(frame, 'requestId'),
    prompt: title,
    kind: isPlan ? 'plan' : 'permission',
    deadlineMs: optionalNumber(frame, 'deadlineMs'),
    ...(isPlan ? {} : { tool: { name, title, input: fieldsAt(frame, 'toolInput') } }),
  }
}

function toQuestion(frame: Fields): RunEvent {
  return {
    type: 'awaiting_input',
    requestId: textAt(frame, 'requestId'),
    prompt: '',
    kind: 'question',
    deadlineMs: optionalNumber(frame, 'deadlineMs'),
    questions: listAt(frame, 'questions').map((question) => ({
      question: textAt(question, 'question'),
      header: textAt(question, 'header'),
      allowsMany: question['multiSelect'] === true,
      options: listAt(question, 'options').map((option) => ({
        label: textAt(option, 'label'),
        description: textAt(option, 'description'),
      })),
    })),
  }
}
