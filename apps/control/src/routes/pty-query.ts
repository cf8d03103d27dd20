import { sandboxOfSession } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { isSessionToken } from '../auth/session-token.ts'
import { SHELL } from '../commands/pty-providers.ts'
import { parseSandboxRef, type SandboxRef } from '../sandbox/sandbox-name.ts'

/** What `/ws/pty` asks for. */
export interface PtyQuery {
  readonly provider: string
  readonly sandbox: SandboxRef | undefined
  /** Whether a session that is there is meant, a new one, or whichever there is. */
  readonly which: 'resume' | 'new' | 'either'
  /** A name of ours for a session: its id, or a token of it. */
  readonly session?: string
  /** A name that the client made up. */
  readonly alias?: string
}

const NAMES = ['session_id', 'provider', 'session_name', 'resume', 'force_new', 'sandbox'] as const
type Name = (typeof NAMES)[number]

const MAX_VALUE_CHARS = 2048
/** UUIDs and whatever else front ends make up. Without a dot, which every name of ours has. */
const ALIAS = /^[A-Za-z0-9_-]{1,128}$/

function bad(name: string, why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use parameter "${name}": ${why}`)
}

function readValues(query: URLSearchParams): ReadonlyMap<Name, string> {
  const values = new Map<Name, string>()
  for (const [name, value] of query) {
    const known = NAMES.find((candidate) => candidate === name)
    if (known === undefined) throw bad(name.replace(/[^\x20-\x7e]/g, '').slice(0, 40), 'unknown')
    if (values.has(known)) throw bad(known, 'given twice')
    if (value.length > MAX_VALUE_CHARS) throw bad(known, 'too long')
    // As if it were not there: front ends send what they have not got as nothing.
    if (value !== '') values.set(known, value)
  }
  return values
}

function readFlag(values: ReadonlyMap<Name, string>, name: 'resume' | 'force_new'): boolean {
  const value = values.get(name) ?? '0'
  if (!['0', '1', 'false', 'true'].includes(value)) throw bad(name, 'expected 1 or 0')
  return value === '1' || value === 'true'
}

/** Where a new session is asked for, a name of ours stands for another one and says nothing. */
function readSession(id: string | undefined, which: PtyQuery['which']): Pick<PtyQuery, 'session' | 'alias'> {
  if (id === undefined) return {}
  if (isSessionToken(id) || sandboxOfSession(id) !== undefined) return which === 'new' ? {} : { session: id }
  if (ALIAS.test(id)) return { alias: id }
  // What can be no name of a session is not there, like one that could be.
  if (which === 'resume') return { session: id }
  throw bad('session_id', 'expected letters, digits, - and _, at most 128')
}

/** Decodes the query of `/ws/pty`; throws `bad_request`. `session_name` is for people, and nothing here shows it. */
export function parsePtyQuery(query: URLSearchParams): PtyQuery {
  const values = readValues(query)
  const isResume = readFlag(values, 'resume')
  const which = readFlag(values, 'force_new') ? 'new' : isResume ? 'resume' : 'either'
  const sandbox = values.get('sandbox')
  return {
    provider: values.get('provider') ?? SHELL,
    sandbox: sandbox === undefined ? undefined : parseSandboxRef(sandbox),
    which,
    ...readSession(values.get('session_id'), which),
  }
}
