import {
  type DriverInput,
  INITIALIZE_ID,
  type JournalEntry,
  parseClaudeRequest,
  recordAt,
  textAt,
} from '@sandwire/agent'
import {
  CLAUDE_SESSION_NOT_FOUND,
  type ClaudeServerMessage,
  encodeClaudeMessage,
} from '@sandwire/internal-api'
import type { ClaudeSession } from './claude-session.ts'

export interface ClaudeCodecOptions {
  /** The session's name for the client. */
  readonly name: string
  /** The client continues a conversation. */
  readonly isResumed: boolean
  /** The client may send messages, answers and settings. */
  readonly mayInput: boolean
  /** Account of the client. */
  readonly by: string
  readonly mintId: () => string
}

/** What a message of a client leads to, in order. */
export type ClaudeEffect =
  | { readonly do: 'toClient'; readonly text: string }
  | { readonly do: 'toAgent'; readonly input: DriverInput }

/** How lines of partial messages come from the feed. */
const PARTIAL_PREFIX = '{"kind":"line","line":'

/** Translates between the messages of `/ws/claude-stream` and the journal of one run of Claude Code, without any I/O. */
export class ClaudeCodec {
  readonly #options: ClaudeCodecOptions
  readonly #session: ClaudeSession
  /** Requests that this client answered. */
  readonly #answered = new Set<string>()

  constructor(options: ClaudeCodecOptions, session: ClaudeSession) {
    this.#options = options
    this.#session = session
  }

  /** The first messages: who is connected, and what a client that joins later has missed. */
  greet(): readonly string[] {
    const { name, isResumed } = this.#options
    const { settings, repeated } = this.#session
    const connected = encodeClaudeMessage({
      type: 'system',
      subtype: 'connected',
      session_id: name,
      resumed: isResumed,
      settings,
    })
    return [connected, ...repeated]
  }

  /** An entry of the journal. */
  entry(entry: JournalEntry): readonly string[] {
    switch (entry.kind) {
      case 'line':
        return 'line' in entry
          ? linesOf(entry.line)
          : [encodeClaudeMessage({ type: 'raw', data: entry.text })]
      case 'stderr':
        return [system('stderr', entry.text.replace(/\n$/, ''))]
      case 'approval':
        return this.#answered.has(entry.requestId)
          ? []
          : [encodeClaudeMessage({ type: 'control_cancel_request', request_id: entry.requestId })]
      case 'not_started':
        return [system('error', entry.message), exit(null)]
      case 'stop':
        return entry.reason === 'completed' ? [] : [system('error', entry.message)]
      case 'exit':
        // A program that found the conversation has said so in its first line.
        return [...(this.#session.isMissing ? [CLAUDE_SESSION_NOT_FOUND] : []), exit(entry.code)]
      case 'event':
      case 'interrupt':
      case 'message':
      case 'setting':
      case 'started':
      case 'tick':
        return []
    }
  }

  /** A line of a partial message. */
  partial(json: string): readonly string[] {
    return [json.slice(PARTIAL_PREFIX.length, -1)]
  }

  /** A message of the client. */
  fromClient(message: string | Uint8Array): readonly ClaudeEffect[] {
    const { mayInput, name } = this.#options
    const request = parseClaudeRequest(message)
    if (request.kind === 'ping') return [toClient({ type: 'pong' })]
    if (request.kind === 'initialize')
      return [toClient({ type: 'system', subtype: 'echo', payload: request.payload })]
    if (request.kind === 'invalid') return [{ do: 'toClient', text: system('error', request.problem) }]
    if (!mayInput)
      return [{ do: 'toClient', text: system('error', 'Cannot do this: this connection is read-only') }]
    switch (request.kind) {
      case 'interrupt':
        return [
          { do: 'toAgent', input: { kind: 'interrupt' } },
          ...(request.isReported
            ? [toClient({ type: 'system', subtype: 'interrupted', session_id: name })]
            : []),
        ]
      case 'setting':
        return [{ do: 'toAgent', input: request }]
      case 'message': {
        const { mode, ...sent } = request
        const id = this.#options.mintId()
        return [...this.#changeMode(mode), { do: 'toAgent', input: { ...sent, id, by: this.#options.by } }]
      }
      case 'answer': {
        this.#answered.add(request.answer.requestId)
        const { answer, permissions } = request
        return [{ do: 'toAgent', input: { kind: 'approval', ...answer, permissions, by: this.#options.by } }]
      }
    }
  }

  /** A message says in which mode it is meant. */
  #changeMode(mode: ClaudeSession['mode'] | undefined): readonly ClaudeEffect[] {
    if (mode === undefined || mode === this.#session.mode) return []
    return [{ do: 'toAgent', input: { kind: 'setting', setting: { subtype: 'set_permission_mode', mode } } }]
  }
}

/** A line as the program wrote it, unless it is for the driver only. */
function linesOf(line: Readonly<Record<string, unknown>>): readonly string[] {
  const type = textAt(line, 'type')
  const isOurs =
    type === 'control_response' && textAt(recordAt(line, 'response'), 'request_id') === INITIALIZE_ID
  // Only notes that a piece came, which was sent when it came.
  const isPiece = type === 'stream_event' && textAt(recordAt(line, 'event'), 'type') === undefined
  return isOurs || isPiece ? [] : [JSON.stringify(line)]
}

export function system(subtype: 'stderr' | 'error', message: string): string {
  return encodeClaudeMessage({ type: 'system', subtype, message })
}

function exit(code: number | null): string {
  return encodeClaudeMessage({ type: 'result', subtype: 'exit', exit_code: code })
}

function toClient(message: ClaudeServerMessage): ClaudeEffect {
  return { do: 'toClient', text: encodeClaudeMessage(message) }
}
