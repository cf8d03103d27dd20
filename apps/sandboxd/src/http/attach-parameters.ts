import { limits, type Role, ROLES, SandwireError } from '@sandwire/protocol'
import type { CreateParameters } from '../sessions/session-command.ts'

/** What an upgrade asks for. */
export type AttachParameters =
  | {
      readonly kind: 'create'
      readonly createId: string | undefined
      readonly create: CreateParameters
      readonly rights: AttachRights
    }
  | { readonly kind: 'join'; readonly session: string; readonly rights: AttachRights }

export interface AttachRights {
  /** Undefined means whatever the credential allows. */
  readonly role: Role | undefined
  readonly take: boolean
  readonly cols: number
  readonly rows: number
}

const SINGLE = [
  'sandbox',
  'cmd',
  'mode',
  'cwd',
  'cols',
  'rows',
  'createId',
  'session',
  'role',
  'take',
  'keep',
  'overflow',
  'pin',
] as const
type SingleName = (typeof SINGLE)[number]
/** Meaningless or impossible without `sandwire.v1`. */
const V1_ONLY: readonly SingleName[] = ['createId', 'session', 'role', 'take', 'keep', 'overflow', 'pin']
/** Make no sense for a session that exists. */
const CREATE_ONLY: readonly SingleName[] = ['cmd', 'mode', 'cwd', 'createId', 'keep', 'overflow', 'pin']

const MAX_ARGS = 1024
const MAX_ARG_CHARS = 128 * 1024

function bad(name: string, why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use parameter "${name}": ${why}`)
}

function readSingles(query: URLSearchParams): Map<SingleName, string> {
  const values = new Map<SingleName, string>()
  for (const [name, value] of query) {
    if (name === 'arg') continue
    const known = SINGLE.find((single) => single === name)
    if (known === undefined)
      throw bad(
        name.replace(/\p{C}/gu, '').slice(0, 40),
        name === 'token' ? 'a token travels in the Authorization header' : 'unknown',
      )
    if (values.has(known)) throw bad(known, 'given twice')
    values.set(known, value)
  }
  return values
}

function oneOf<const T extends string>(
  name: string,
  value: string | undefined,
  options: readonly T[],
  fallback: T,
): T {
  if (value === undefined) return fallback
  const found = options.find((option) => option === value)
  if (found === undefined) throw bad(name, `expected ${options.join(' or ')}`)
  return found
}

/** A whole number in plain decimal digits, so that no two spellings mean the same. */
function whole(
  name: string,
  value: string | undefined,
  range: { min: number; max: number; fallback: number },
): number {
  if (value === undefined) return range.fallback
  const number = /^(0|[1-9][0-9]{0,8})$/.test(value) ? Number(value) : Number.NaN
  if (!(number >= range.min && number <= range.max))
    throw bad(name, `expected a whole number from ${range.min} to ${range.max}`)
  return number
}

function readArgv(cmd: string | undefined, args: readonly string[]): readonly string[] {
  if (cmd === undefined && args.length > 0) throw bad('arg', 'there is no cmd')
  if (cmd === '') throw bad('cmd', 'empty')
  const argv = cmd === undefined ? [] : [cmd, ...args]
  if (argv.length > MAX_ARGS) throw bad('arg', `more than ${MAX_ARGS}`)
  for (const word of argv) {
    if (word.includes('\0')) throw bad('arg', 'it holds a NUL character')
    if (word.length > MAX_ARG_CHARS) throw bad('arg', 'too long')
  }
  return argv
}

/** Decodes the query of an upgrade; throws `bad_request` or `needs_v1`. */
export function parseAttach(query: URLSearchParams, dialect: 'plain' | 'v1'): AttachParameters {
  const values = readSingles(query)
  if (dialect === 'plain') {
    const refused = V1_ONLY.find((name) => values.has(name))
    if (refused !== undefined)
      throw new SandwireError(
        'needs_v1',
        `Cannot use parameter "${refused}" without the sandwire.v1 subprotocol`,
      )
  }
  const cells = { min: 1, max: limits.MAX_CELLS }
  const rights: AttachRights = {
    role: readRole(values.get('role')),
    take: oneOf('take', values.get('take'), ['0', '1'], '0') === '1',
    cols: whole('cols', values.get('cols'), { ...cells, fallback: 80 }),
    rows: whole('rows', values.get('rows'), { ...cells, fallback: 24 }),
  }
  const session = values.get('session')
  if (session !== undefined) {
    const refused = CREATE_ONLY.find((name) => values.has(name)) ?? (query.has('arg') ? 'arg' : undefined)
    if (refused !== undefined) throw bad(refused, 'the session exists already')
    return { kind: 'join', session: checkSessionId(session), rights }
  }
  const createId = values.get('createId')
  if (createId !== undefined && !/^[0-9a-f]{32}$/.test(createId))
    throw bad('createId', 'expected 32 lower-case hex digits')
  const mode = oneOf('mode', values.get('mode'), ['pipe', 'pty'], 'pipe')
  return {
    kind: 'create',
    createId,
    rights,
    create: {
      argv: readArgv(values.get('cmd'), query.getAll('arg')),
      mode,
      cwd: values.get('cwd'),
      keepSeconds: readKeep(values.get('keep'), dialect),
      overflow: oneOf(
        'overflow',
        values.get('overflow'),
        ['block', 'trim'],
        mode === 'pty' ? 'trim' : 'block',
      ),
      isPinned: oneOf('pin', values.get('pin'), ['0', '1'], '0') === '1',
    },
  }
}

function readRole(value: string | undefined): Role | undefined {
  return value === undefined ? undefined : oneOf('role', value, ROLES, 'viewer')
}

function readKeep(value: string | undefined, dialect: 'plain' | 'v1'): number {
  const fallback = dialect === 'plain' ? 0 : limits.KEEP_SECONDS
  return whole('keep', value, { min: 0, max: limits.MAX_KEEP_SECONDS, fallback })
}

/** Ids are compared as they are, so only their one canonical spelling is let through. */
export function checkSessionId(session: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(session))
    throw new SandwireError('session_not_found', 'No session has this id')
  return session
}
