import { sandboxIdOf } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { isSessionToken } from '../auth/session-token.ts'
import { parseSandboxRef, type SandboxRef } from '../sandbox/sandbox-id.ts'
import { SHELL } from './pty-providers.ts'

/** The decoded query of `/ws/pty`. */
export interface PtyQuery {
  readonly provider: string
  readonly sandbox: SandboxRef | undefined
  /** `resume`: only an existing session. `new`: always a new one. `either`: the existing session if there is one. */
  readonly select: 'resume' | 'new' | 'either'
  /** The session's id or one of its tokens. */
  readonly session?: string
  /** A name that the client made up. */
  readonly alias?: string
}

const NAMES = ['session_id', 'provider', 'session_name', 'resume', 'force_new', 'sandbox'] as const
type Name = (typeof NAMES)[number]

const MAX_VALUE_CHARS = 2048
/** UUIDs and other names that clients make up. Excludes the dot, which every session id and token contains. */
const ALIAS = /^[A-Za-z0-9_-]{1,128}$/

function badParameter(name: string, problem: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use parameter "${name}": ${problem}`)
}

function readValues(query: URLSearchParams): ReadonlyMap<Name, string> {
  const values = new Map<Name, string>()
  for (const [name, value] of query) {
    const known = NAMES.find((candidate) => candidate === name)
    if (known === undefined) throw badParameter(name.replace(/[^\x20-\x7e]/g, '').slice(0, 40), 'unknown')
    if (values.has(known)) throw badParameter(known, 'given twice')
    if (value.length > MAX_VALUE_CHARS) throw badParameter(known, 'too long')
    // Clients send an empty value for a parameter they do not have.
    if (value !== '') values.set(known, value)
  }
  return values
}

function readFlag(values: ReadonlyMap<Name, string>, name: 'resume' | 'force_new'): boolean {
  const value = values.get(name) ?? '0'
  if (!['0', '1', 'false', 'true'].includes(value)) throw badParameter(name, 'expected 1 or 0')
  return value === '1' || value === 'true'
}

function readSession(
  id: string | undefined,
  select: PtyQuery['select'],
): Pick<PtyQuery, 'session' | 'alias'> {
  if (id === undefined) return {}
  // A new session gets a new id, so the id or token of another session is ignored.
  if (isSessionToken(id) || sandboxIdOf(id) !== undefined) return select === 'new' ? {} : { session: id }
  if (ALIAS.test(id)) return { alias: id }
  // A malformed name is reported like an unknown session.
  if (select === 'resume') return { session: id }
  throw badParameter('session_id', 'expected letters, digits, - and _, at most 128')
}

/** Decodes the query of `/ws/pty`; throws `bad_request`. Ignores `session_name`, which is only a display name. */
export function parsePtyQuery(query: URLSearchParams): PtyQuery {
  const values = readValues(query)
  const isResume = readFlag(values, 'resume')
  const select = readFlag(values, 'force_new') ? 'new' : isResume ? 'resume' : 'either'
  const sandbox = values.get('sandbox')
  return {
    provider: values.get('provider') ?? SHELL,
    sandbox: sandbox === undefined ? undefined : parseSandboxRef(sandbox),
    select,
    ...readSession(values.get('session_id'), select),
  }
}
