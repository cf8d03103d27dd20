import { type ErrorCode, ERRORS, formatRetryMessage, type SandwireError } from '@sandwire/protocol'

/**
 * Subprotocol of compat clients. Optional, but a browser that offers a ticket as a subprotocol needs another one that the
 * server can select.
 */
export const COMPAT_SUBPROTOCOL = 'sandwire.envelope'

/** Text messages to a client of `/ws/pty`. Front ends read exactly these fields. */
export type CompatServerMessage =
  /** The first message: the name of the session. */
  | { readonly type: 'session'; readonly session_id: string }
  /** Earlier output. */
  | { readonly type: 'history'; readonly data: string }
  | { readonly type: 'output'; readonly data: string; readonly session_id: string }
  /** Null when a signal ended the process. */
  | { readonly type: 'exit'; readonly code: number | null; readonly session_id: string }
  | { readonly type: 'pong' }
  | { readonly type: 'error'; readonly data: string }
  | { readonly type: 'session_not_found' }

export function encodeCompatMessage(message: CompatServerMessage): string {
  return JSON.stringify(message)
}

/** Close codes that existing front ends expect. */
const CLOSE = {
  notFound: 4001,
  terminated: 4002,
  unknownProvider: 4003,
  refused: 4004,
  tooFast: 4005,
  unavailable: 4006,
  timeout: 4007,
  notAllowed: 4008,
} as const

/** Errors that clients cannot distinguish from a session that never existed. */
const MISSING: readonly ErrorCode[] = ['session_not_found', 'session_gone', 'resume_lost']

/** Close codes of compat connections. */
export const COMPAT_CLOSE_CODES: readonly number[] = Object.values(CLOSE)

const CLOSE_OF: Partial<Record<ErrorCode, number>> = {
  sandbox_not_found: CLOSE.notFound,
  session_ended: CLOSE.terminated,
  replaced: CLOSE.terminated,
  bad_template: CLOSE.unknownProvider,
  rate_limited: CLOSE.tooFast,
  too_many_attaches: CLOSE.tooFast,
  too_many_from_address: CLOSE.tooFast,
  input_overflow: CLOSE.tooFast,
  hello_timeout: CLOSE.timeout,
  silent: CLOSE.timeout,
  timed_out: CLOSE.timeout,
  unauthorized: CLOSE.notAllowed,
  forbidden: CLOSE.notAllowed,
  origin_refused: CLOSE.notAllowed,
  command_blocked: CLOSE.notAllowed,
  role_refused: CLOSE.notAllowed,
  revoked: CLOSE.notAllowed,
  reauthorise: CLOSE.notAllowed,
}

/** The compat close code of an error; errors outside the table are `refused` or `unavailable`. */
function closeOf(code: ErrorCode): number {
  if (MISSING.includes(code)) return CLOSE.notFound
  return CLOSE_OF[code] ?? (ERRORS[code].status < 500 ? CLOSE.refused : CLOSE.unavailable)
}

/** Bytes of the reason in a close frame, by RFC 6455. */
const MAX_REASON_BYTES = 123

/** Truncates a text to the size of a close reason, in complete characters. */
function reasonOf(text: string): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(MAX_REASON_BYTES))
  return text.slice(0, read)
}

/** The last message to a client, and the close frame after it. */
export interface CompatClose {
  readonly last: CompatServerMessage
  readonly code: number
  readonly reason: string
}

/** How an error ends a connection. For an unknown provider the reason has the message, where front ends look for it. */
export function compatClose({ code, message }: Pick<SandwireError, 'code' | 'message'>): CompatClose {
  const isMissing = MISSING.includes(code)
  return {
    last: isMissing ? { type: 'session_not_found' } : { type: 'error', data: message },
    code: closeOf(code),
    reason: code === 'bad_template' ? reasonOf(message) : isMissing ? 'session_not_found' : code,
  }
}

/** The same for a caught error, with its retry time in the message. */
export function compatCloseOfError(error: SandwireError): CompatClose {
  return compatClose({ code: error.code, message: formatRetryMessage(error) })
}

/** An error as a terminal draws it, for clients that draw everything they receive. */
export function formatNotice(message: string): string {
  return `\r\n[${message.replace(/\p{Cc}/gu, ' ')}]\r\n`
}

/** How an error ends a text terminal: what it draws last, and the close frame after it. */
export function textCloseOfError(error: SandwireError): {
  readonly notice: string
  readonly code: number
  readonly reason: ErrorCode
} {
  const { code } = error
  return { notice: formatNotice(formatRetryMessage(error)), code: ERRORS[code].close, reason: code }
}

/** Text messages to a client of `/ws/claude-stream`, besides the program's own lines. */
export type ClaudeServerMessage =
  /** The first message. */
  | {
      readonly type: 'system'
      readonly subtype: 'connected'
      readonly session_id: string
      readonly resumed: boolean
      readonly settings: { readonly max_thinking_tokens: number | null; readonly model: string }
    }
  | {
      readonly type: 'system'
      readonly subtype: 'stderr' | 'error' | 'session_not_found'
      readonly message: string
    }
  | { readonly type: 'system'; readonly subtype: 'interrupted'; readonly session_id: string }
  /** Answers `initialize`. */
  | { readonly type: 'system'; readonly subtype: 'echo'; readonly payload: unknown }
  /** A line of the program that is not JSON. */
  | { readonly type: 'raw'; readonly data: string }
  /** A request for permission that another client answered. */
  | { readonly type: 'control_cancel_request'; readonly request_id: string }
  /** The program has ended; null: by a signal, or because it could not be started. */
  | { readonly type: 'result'; readonly subtype: 'exit'; readonly exit_code: number | null }
  | { readonly type: 'pong' }

export function encodeClaudeMessage(message: ClaudeServerMessage): string {
  return JSON.stringify(message)
}

export const CLAUDE_SESSION_NOT_FOUND = encodeClaudeMessage({
  type: 'system',
  subtype: 'session_not_found',
  message: 'The session does not exist. Start a new one.',
})

/** The last text to a client of `/ws/claude-stream`, and the close frame after it. */
export interface ClaudeClose {
  readonly last: string
  readonly code: number
  readonly reason: string
}

/** How an error ends a connection of `/ws/claude-stream`. */
export function claudeClose(error: Pick<SandwireError, 'code' | 'message'>): ClaudeClose {
  const { last, code, reason } = compatClose(error)
  return {
    last:
      last.type === 'session_not_found'
        ? CLAUDE_SESSION_NOT_FOUND
        : encodeClaudeMessage({ type: 'system', subtype: 'error', message: error.message }),
    code,
    reason,
  }
}

/** The same for a caught error, with its retry time in the message. */
export function claudeCloseOfError(error: SandwireError): ClaudeClose {
  return claudeClose({ code: error.code, message: formatRetryMessage(error) })
}
