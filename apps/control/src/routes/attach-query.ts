import { sandboxIdOf } from '@sandwire/internal-api'
import {
  type AttachQuery,
  type Dialect,
  formatAttachQuery,
  parseAttachQuery,
  SandwireError,
} from '@sandwire/protocol'
import { limitTimeouts, type SessionTimeouts } from '../session-settings.ts'
import { parseSandboxRef, type SandboxRef } from '../sandbox/sandbox-id.ts'

/** The request line and headers of a request to sandboxd may have 16 KiB together. */
const MAX_QUERY_CHARS = 15_000

/** A decoded attach request. */
export interface AttachRequest {
  readonly target:
    /** Start a process in a sandbox; without one, in the server's default. */
    | { readonly kind: 'start'; readonly sandbox: SandboxRef | undefined; readonly mayCreate: boolean }
    /** Join a session; `sandbox` only when the request names it too. */
    | { readonly kind: 'join'; readonly session: string; readonly sandbox?: SandboxRef }
  /** Can be sent twice without starting two processes. */
  readonly isIdempotent: boolean
  /** The query for sandboxd, in canonical order. */
  readonly query: string
}

function readTarget({ values }: AttachQuery): AttachRequest['target'] {
  const session = values.get('session')
  const named = values.get('sandbox')
  const sandbox = named === undefined ? undefined : parseSandboxRef(named)
  if (session === undefined) return { kind: 'start', sandbox, mayCreate: values.get('create') !== '0' }
  if (sandboxIdOf(session) === undefined)
    throw new SandwireError('bad_request', 'Cannot use parameter "session": not a session id')
  return { kind: 'join', session, ...(sandbox === undefined ? {} : { sandbox }) }
}

function withTimeouts({ values, args }: AttachQuery, timeouts: SessionTimeouts): AttachQuery {
  const secondsOf = (name: 'lifetime' | 'idle'): number | undefined => {
    const value = values.get(name)
    return value === undefined ? undefined : Number(value)
  }
  const limited = new Map(values)
  const { lifetime, idle } = limitTimeouts(
    { lifetime: secondsOf('lifetime'), idle: secondsOf('idle') },
    timeouts,
  )
  if (lifetime !== undefined) limited.set('lifetime', String(lifetime))
  if (idle !== undefined) limited.set('idle', String(idle))
  return { values: limited, args }
}

/** Decodes the query of an attach request; throws `bad_request`, `needs_v1` or `frame_too_large`. */
export function parseAttachRequest(
  query: URLSearchParams,
  dialect: Dialect,
  timeouts: SessionTimeouts,
): AttachRequest {
  const requested = parseAttachQuery(query, dialect)
  const target = readTarget(requested)
  const parsed = target.kind === 'start' ? withTimeouts(requested, timeouts) : requested
  const forwarded = formatAttachQuery(parsed, ['sandbox', 'create']).toString()
  if (forwarded.length > MAX_QUERY_CHARS)
    throw new SandwireError(
      'frame_too_large',
      `Cannot start the process: its command line is over ${MAX_QUERY_CHARS} characters in a URL`,
    )
  return { target, isIdempotent: target.kind === 'join' || parsed.values.has('createId'), query: forwarded }
}
