import { sandboxIdOf } from '@sandwire/internal-api'
import { type Dialect, limits, ROLES, SandwireError } from '@sandwire/protocol'
import { parseSandboxRef, type SandboxRef } from '../sandbox/sandbox-name.ts'

/** A request to sandboxd is one line and its headers, of 16 KiB together. */
const MAX_QUERY_CHARS = 15_000
const MAX_ARGS = 1024
const MAX_ARG_CHARS = 128 * 1024
const MAX_CWD_CHARS = 4096

/** What an attach asks for. */
export interface AttachQuery {
  readonly target:
    /** Start a process in a sandbox; without one, in the server's default. */
    | { readonly kind: 'start'; readonly sandbox: SandboxRef | undefined; readonly mayCreate: boolean }
    /** Join a session; `sandbox` only when the request names it too. */
    | { readonly kind: 'join'; readonly session: string; readonly sandbox?: SandboxRef }
  /** Can be sent twice without starting two processes. */
  readonly isIdempotent: boolean
  /** What sandboxd is asked: every parameter once, in one spelling, and none that is not for it. */
  readonly query: string
}

interface Rule {
  readonly expected: string
  readonly accepts: (value: string) => boolean
  /** Meaningless or impossible in the plain dialect. */
  readonly isV1Only?: true
  /** Makes no sense for a session that exists. */
  readonly isForStart?: true
  /** For control; sandboxd is not told. */
  readonly isOurs?: true
}

const oneOf = (...options: readonly string[]): Pick<Rule, 'expected' | 'accepts'> => ({
  expected: options.join(' or '),
  accepts: (value) => options.includes(value),
})
/** Plain decimal digits, so that no two spellings mean the same. */
const whole = (min: number, max: number): Pick<Rule, 'expected' | 'accepts'> => ({
  expected: `a whole number from ${min} to ${max}`,
  accepts: (value) => /^(0|[1-9][0-9]{0,8})$/.test(value) && Number(value) >= min && Number(value) <= max,
})
const text = (maxChars: number): Pick<Rule, 'expected' | 'accepts'> => ({
  expected: `a text of at most ${maxChars} characters without NUL`,
  accepts: (value) =>
    value !== '' && value.length <= maxChars && value.isWellFormed() && !value.includes('\0'),
})

/** Every parameter but `arg`, which may be repeated; they are passed on in this order. */
const RULES = {
  sandbox: { ...text(64), isOurs: true },
  create: { ...oneOf('0', '1'), isForStart: true, isOurs: true },
  session: { ...text(128), isV1Only: true },
  cmd: { ...text(MAX_ARG_CHARS), isForStart: true },
  mode: { ...oneOf('pipe', 'pty'), isForStart: true },
  cwd: { ...text(MAX_CWD_CHARS), isForStart: true },
  createId: {
    expected: '32 lower-case hex digits',
    accepts: (value) => /^[0-9a-f]{32}$/.test(value),
    isV1Only: true,
    isForStart: true,
  },
  keep: { ...whole(0, limits.MAX_KEEP_SECONDS), isV1Only: true, isForStart: true },
  overflow: { ...oneOf('block', 'trim'), isV1Only: true, isForStart: true },
  pin: { ...oneOf('0', '1'), isV1Only: true, isForStart: true },
  role: { ...oneOf(...ROLES), isV1Only: true },
  take: { ...oneOf('0', '1'), isV1Only: true },
  cols: whole(1, limits.MAX_CELLS),
  rows: whole(1, limits.MAX_CELLS),
} as const satisfies Readonly<Record<string, Rule>>

type Name = keyof typeof RULES
/** Every parameter of an attach that control decodes here. */
export type AttachParameter = Name | 'arg'
const NAMES = Object.keys(RULES) as readonly Name[]

function bad(name: string, why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use parameter "${name}": ${why}`)
}

function readValues(query: URLSearchParams, dialect: Dialect): ReadonlyMap<Name, string> {
  const values = new Map<Name, string>()
  for (const [name, value] of query) {
    if (name === 'arg') continue
    const known = NAMES.find((candidate) => candidate === name)
    if (known === undefined) throw bad(name.replace(/\p{C}/gu, '').slice(0, 40), 'unknown')
    if (values.has(known)) throw bad(known, 'given twice')
    const rule: Rule = RULES[known]
    if (rule.isV1Only === true && dialect === 'plain')
      throw new SandwireError(
        'needs_v1',
        `Cannot use parameter "${known}" without the sandwire.v1 subprotocol`,
      )
    if (!rule.accepts(value)) throw bad(known, `expected ${rule.expected}`)
    values.set(known, value)
  }
  return values
}

function readArgs(query: URLSearchParams, hasCmd: boolean): readonly string[] {
  const args = query.getAll('arg')
  if (args.length > 0 && !hasCmd) throw bad('arg', 'there is no cmd')
  if (args.length > MAX_ARGS - 1) throw bad('arg', `more than ${MAX_ARGS - 1}`)
  for (const arg of args)
    if (arg.length > MAX_ARG_CHARS || arg.includes('\0') || !arg.isWellFormed())
      throw bad('arg', `expected ${text(MAX_ARG_CHARS).expected}`)
  return args
}

function spell(values: ReadonlyMap<Name, string>, args: readonly string[]): string {
  const query = new URLSearchParams()
  for (const name of NAMES) {
    const value = values.get(name)
    const rule: Rule = RULES[name]
    if (value !== undefined && rule.isOurs !== true) query.append(name, value)
    if (name === 'cmd') for (const arg of args) query.append('arg', arg)
  }
  const text = query.toString()
  if (text.length > MAX_QUERY_CHARS)
    throw new SandwireError(
      'frame_too_large',
      `Cannot start the process: its command line is over ${MAX_QUERY_CHARS} characters in a URL`,
    )
  return text
}

function readTarget(values: ReadonlyMap<Name, string>, hasArgs: boolean): AttachQuery['target'] {
  const session = values.get('session')
  const named = values.get('sandbox')
  const sandbox = named === undefined ? undefined : parseSandboxRef(named)
  if (session === undefined) return { kind: 'start', sandbox, mayCreate: values.get('create') !== '0' }
  const refused = NAMES.find((name) => {
    const rule: Rule = RULES[name]
    return rule.isForStart === true && values.has(name)
  })
  if (refused !== undefined || hasArgs) throw bad(refused ?? 'arg', 'the session exists already')
  if (sandboxIdOf(session) === undefined) throw bad('session', 'not spelled like a session id')
  return { kind: 'join', session, ...(sandbox === undefined ? {} : { sandbox }) }
}

/** Decodes the query of an attach, once; throws `bad_request` or `needs_v1`. */
export function parseAttachQuery(query: URLSearchParams, dialect: Dialect): AttachQuery {
  const values = readValues(query, dialect)
  const args = readArgs(query, values.has('cmd'))
  const target = readTarget(values, args.length > 0)
  return {
    target,
    isIdempotent: target.kind === 'join' || values.has('createId'),
    query: spell(values, args),
  }
}
