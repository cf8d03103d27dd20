import { type ErrorCode, ERRORS, formatRetryMessage, type SandwireError } from '@sandwire/protocol'

/**
 * What a client of an envelope may offer as its subprotocol. It need not, but a browser that offers a ticket must be answered
 * with something else that it offered.
 */
export const COMPAT_SUBPROTOCOL = 'sandwire.envelope'

/** Text messages to a client of `/ws/pty`. Front ends read exactly these fields. */
export type CompatServerMessage =
  /** First of all: what the session is called from now on. */
  | { readonly type: 'session'; readonly session_id: string }
  /** What was written before. */
  | { readonly type: 'history'; readonly data: string }
  | { readonly type: 'output'; readonly data: string; readonly session_id: string }
  /** Null when a signal ended it. */
  | { readonly type: 'exit'; readonly code: number | null; readonly session_id: string }
  | { readonly type: 'pong' }
  | { readonly type: 'error'; readonly data: string }
  | { readonly type: 'session_not_found' }

export function encodeCompatMessage(message: CompatServerMessage): string {
  return JSON.stringify(message)
}

/** Close codes of the envelopes, which existing front ends know. */
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

/** The close code of an error where an envelope is spoken; what is not in the table is a fault of the request or of ours. */
function closeOf(code: ErrorCode): number {
  if (MISSING.includes(code)) return CLOSE.notFound
  return CLOSE_OF[code] ?? (ERRORS[code].status < 500 ? CLOSE.refused : CLOSE.unavailable)
}

/** Bytes of the reason in a close frame, by RFC 6455. */
const MAX_REASON_BYTES = 123

/** As much of a text as a close frame carries, in whole characters. */
function reasonOf(text: string): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(MAX_REASON_BYTES))
  return text.slice(0, read)
}

/** The last message to a client, and the close frame behind it. */
export interface CompatClose {
  readonly last: CompatServerMessage
  readonly code: number
  readonly reason: string
}

/** How an error ends a connection. An unknown provider is said in the reason too, where front ends look for it. */
export function compatClose({ code, message }: Pick<SandwireError, 'code' | 'message'>): CompatClose {
  const isMissing = MISSING.includes(code)
  return {
    last: isMissing ? { type: 'session_not_found' } : { type: 'error', data: message },
    code: closeOf(code),
    reason: code === 'bad_template' ? reasonOf(message) : isMissing ? 'session_not_found' : code,
  }
}

/** The same, for an error that was thrown: it may say how long to wait. */
export function compatCloseOfError(error: SandwireError): CompatClose {
  return compatClose({ code: error.code, message: formatRetryMessage(error) })
}
