import { ROLES } from './client-frames.ts'
import { SandwireError } from './errors.ts'
import { KEEP_SECONDS, MAX_CELLS, MAX_ENV_ENTRIES, MAX_KEEP_SECONDS, MAX_SESSION_SECONDS } from './limits.ts'
import type { Dialect } from './server/attachment.ts'
import type { Overflow } from './server/session-options.ts'

/** Words of a command line, the command included. */
export const MAX_ARGS = 1024
export const MAX_ARG_CHARS = 128 * 1024
export const MAX_CWD_CHARS = 4096
const MAX_ID_CHARS = 4096
const CREATE_ID = /^[0-9a-f]{32}$/
const PANE = /^%\d{1,9}$/
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,255}$/

export const MODES = ['pipe', 'pty'] as const
export const OVERFLOWS = ['block', 'trim'] as const
export type Mode = (typeof MODES)[number]

/** Parameters of a session to create. */
export interface CreateParameters {
  /** Empty for the server's shell. */
  readonly argv: readonly string[]
  /** A pane of tmux (`%3`) instead of a command. */
  readonly pane: string | undefined
  readonly mode: Mode
  readonly cwd: string | undefined
  readonly keepSeconds: number
  /** Seconds until the session is ended: after its creation, and without input and output while attached. */
  readonly lifetimeSeconds: number | undefined
  readonly idleSeconds: number | undefined
  readonly overflow: Overflow
  /** Keeps the sandbox from being stopped as idle while the process runs. */
  readonly isPinned: boolean
}

/** A rule for one parameter of an attach URL. */
interface Rule {
  /** Describes valid values in error messages. */
  readonly expected: string
  readonly accepts: (value: string) => boolean
  /** Not available to plain clients. */
  readonly isV1Only?: true
  /** Only for new sessions. */
  readonly isForCreate?: true
}

const oneOf = (options: readonly string[]): Pick<Rule, 'expected' | 'accepts'> => ({
  expected: options.join(' or '),
  accepts: (value) => options.includes(value),
})
/** Decimal digits without leading zeros, so that every number has one notation. */
const integer = (min: number, max: number): Pick<Rule, 'expected' | 'accepts'> => ({
  expected: `a whole number from ${min} to ${max}`,
  accepts: (value) => /^(0|[1-9][0-9]{0,8})$/.test(value) && Number(value) >= min && Number(value) <= max,
})
const text = (maxChars: number): Pick<Rule, 'expected' | 'accepts'> => ({
  expected: `a text of at most ${maxChars} characters without NUL`,
  accepts: (value) =>
    value !== '' && value.length <= maxChars && value.isWellFormed() && !value.includes('\0'),
})

/** Every parameter of an attach URL that may appear once; `arg` may be repeated. */
const RULES = {
  sandbox: text(64),
  create: { ...oneOf(['0', '1']), isForCreate: true },
  session: { ...text(MAX_ID_CHARS), isV1Only: true },
  cmd: { ...text(MAX_ARG_CHARS), isForCreate: true },
  pane: {
    expected: 'the id of a tmux pane, such as %3',
    accepts: (value) => PANE.test(value),
    isForCreate: true,
  },
  mode: { ...oneOf(MODES), isForCreate: true },
  cwd: { ...text(MAX_CWD_CHARS), isForCreate: true },
  createId: {
    expected: '32 lower-case hex digits',
    accepts: (value) => CREATE_ID.test(value),
    isV1Only: true,
    isForCreate: true,
  },
  keep: { ...integer(0, MAX_KEEP_SECONDS), isV1Only: true, isForCreate: true },
  lifetime: { ...integer(1, MAX_SESSION_SECONDS), isForCreate: true },
  idle: { ...integer(1, MAX_SESSION_SECONDS), isForCreate: true },
  overflow: { ...oneOf(OVERFLOWS), isV1Only: true, isForCreate: true },
  pin: { ...oneOf(['0', '1']), isV1Only: true, isForCreate: true },
  role: { ...oneOf(ROLES), isV1Only: true },
  take: { ...oneOf(['0', '1']), isV1Only: true },
  cols: integer(1, MAX_CELLS),
  rows: integer(1, MAX_CELLS),
} as const satisfies Readonly<Record<string, Rule>>

type SingleParameter = keyof typeof RULES
const NAMES = Object.keys(RULES) as readonly SingleParameter[]
export type AttachParameter = SingleParameter | 'arg'

/** A pane has a program, a folder and a terminal already. */
const NOT_FOR_PANES = ['cmd', 'mode', 'cwd'] as const

/** The parameters of an attach URL, each with a valid value. */
export interface AttachQuery {
  readonly values: ReadonlyMap<SingleParameter, string>
  readonly args: readonly string[]
}

function badParameter(name: string, problem: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use parameter "${name}": ${problem}`)
}

function parseSingle(query: URLSearchParams, dialect: Dialect): ReadonlyMap<SingleParameter, string> {
  const values = new Map<SingleParameter, string>()
  for (const [name, value] of query) {
    if (name === 'arg') continue
    const known = NAMES.find((candidate) => candidate === name)
    if (known === undefined) {
      const problem = name === 'token' ? 'send the token in the Authorization header' : 'unknown'
      throw badParameter(name.replace(/\p{C}/gu, '').slice(0, 40), problem)
    }
    if (values.has(known)) throw badParameter(known, 'given twice')
    const rule: Rule = RULES[known]
    if (rule.isV1Only === true && dialect === 'plain')
      throw new SandwireError(
        'needs_v1',
        `Cannot use parameter "${known}" without the sandwire.v1 subprotocol`,
      )
    if (!rule.accepts(value)) throw badParameter(known, `expected ${rule.expected}`)
    values.set(known, value)
  }
  return values
}

/** Parses the query of an attach URL; throws `bad_request` or `needs_v1`. */
export function parseAttachQuery(query: URLSearchParams, dialect: Dialect): AttachQuery {
  const values = parseSingle(query, dialect)
  const args = query.getAll('arg')
  if (values.has('session')) {
    const refused = NAMES.find((name) => 'isForCreate' in RULES[name] && values.has(name))
    if (refused !== undefined || args.length > 0)
      throw badParameter(refused ?? 'arg', 'the session exists already')
  }
  if (args.length > 0 && !values.has('cmd')) throw badParameter('arg', 'there is no cmd')
  const unused = values.has('pane') ? NOT_FOR_PANES.find((name) => values.has(name)) : undefined
  if (unused !== undefined) throw badParameter(unused, 'a pane was given')
  if (args.length > MAX_ARGS - 1) throw badParameter('arg', `more than ${MAX_ARGS - 1}`)
  const rule = text(MAX_ARG_CHARS)
  for (const arg of args)
    if (arg !== '' && !rule.accepts(arg)) throw badParameter('arg', `expected ${rule.expected}`)
  return { values, args }
}

/** Writes an attach query in one canonical order, without the parameters in `omit`. */
export function formatAttachQuery(
  { values, args }: AttachQuery,
  omit: readonly AttachParameter[] = [],
): URLSearchParams {
  const query = new URLSearchParams()
  for (const name of NAMES) {
    const value = values.get(name)
    if (value !== undefined && !omit.includes(name)) query.append(name, value)
    if (name === 'cmd') for (const arg of args) query.append('arg', arg)
  }
  return query
}

/** The session that an attach query creates. */
export function createParametersOf({ values, args }: AttachQuery, dialect: Dialect): CreateParameters {
  const cmd = values.get('cmd')
  const pane = values.get('pane')
  const mode = MODES.find((each) => each === values.get('mode')) ?? (pane === undefined ? 'pipe' : 'pty')
  const keep = values.get('keep')
  return {
    argv: cmd === undefined ? [] : [cmd, ...args],
    pane,
    mode,
    cwd: values.get('cwd'),
    keepSeconds: keep === undefined ? (dialect === 'plain' ? 0 : KEEP_SECONDS) : Number(keep),
    lifetimeSeconds: secondsOf(values.get('lifetime')),
    idleSeconds: secondsOf(values.get('idle')),
    overflow: OVERFLOWS.find((each) => each === values.get('overflow')) ?? defaultOverflow(mode),
    isPinned: values.get('pin') === '1',
  }
}

function secondsOf(value: string | undefined): number | undefined {
  return value === undefined ? undefined : Number(value)
}

/** The timeout of a session whose operator allows at most this many seconds; 0: any, and none by default. */
export function limitTimeout(requested: number | undefined, maxSeconds: number): number | undefined {
  return maxSeconds === 0 ? requested : Math.min(requested ?? maxSeconds, maxSeconds)
}

function defaultOverflow(mode: Mode): Overflow {
  return mode === 'pty' ? 'trim' : 'block'
}

/** Body of `POST /sessions`. */
export interface CreateBody {
  readonly createId: string
  readonly create: CreateParameters
  readonly env: Readonly<Record<string, string>>
  readonly cols: number
  readonly rows: number
}

const BODY_FIELDS: readonly string[] = [
  'createId',
  'cmd',
  'args',
  'pane',
  'mode',
  'cwd',
  'env',
  'cols',
  'rows',
  'keep',
  'lifetime',
  'idle',
  'overflow',
  'pin',
]

type BodyFields = Readonly<Record<string, unknown>>

function badField(name: string, problem: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use field "${name}": ${problem}`)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\0')
}

function readInteger(
  fields: BodyFields,
  name: string,
  { min, max, fallback }: { min: number; max: number; fallback: number },
): number {
  const value = fields[name]
  if (value === undefined) return fallback
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max)
    throw badField(name, `expected a whole number from ${min} to ${max}`)
  return value
}

function readTimeout(fields: BodyFields, name: string): number | undefined {
  if (fields[name] === undefined) return undefined
  return readInteger(fields, name, { min: 1, max: MAX_SESSION_SECONDS, fallback: 1 })
}

function readChoice<const T extends string>(
  fields: BodyFields,
  name: string,
  options: readonly T[],
  fallback: T,
): T {
  const value = fields[name]
  if (value === undefined) return fallback
  const found = options.find((option) => option === value)
  if (found === undefined) throw badField(name, `expected ${options.join(' or ')}`)
  return found
}

function readArgv({ cmd, args }: BodyFields): string[] {
  if (cmd === undefined) {
    if (args !== undefined) throw badField('args', 'there is no cmd')
    return []
  }
  if (!isText(cmd) || cmd === '') throw badField('cmd', 'expected a text')
  if (args === undefined) return [cmd]
  if (!Array.isArray(args) || args.length > MAX_ARGS - 1 || !args.every(isText))
    throw badField('args', 'expected a list of texts')
  return [cmd, ...args]
}

function readEnv(value: unknown): Readonly<Record<string, string>> {
  if (value === undefined) return {}
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badField('env', 'expected an object')
  const entries: [string, unknown][] = Object.entries(value)
  if (entries.length > MAX_ENV_ENTRIES) throw badField('env', 'too many entries')
  const env: Record<string, string> = Object.create(null) as Record<string, string>
  for (const [name, content] of entries) {
    if (!ENV_NAME.test(name) || !isText(content)) throw badField('env', 'expected texts under plain names')
    env[name] = content
  }
  return env
}

/** Decodes the body of `POST /sessions`; throws `bad_request`. */
export function parseCreateBody(body: unknown): CreateBody {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new SandwireError('bad_request', 'Cannot read the body: expected a JSON object')
  const fields = body as BodyFields
  for (const name of Object.keys(fields))
    if (!BODY_FIELDS.includes(name)) throw badField(name.replace(/\p{C}/gu, '').slice(0, 40), 'unknown')
  const { createId, cwd, pane, pin = false } = fields
  if (typeof createId !== 'string' || !CREATE_ID.test(createId))
    throw badField('createId', 'expected 32 lower-case hex digits')
  if (cwd !== undefined && !isText(cwd)) throw badField('cwd', 'expected a text')
  if (typeof pin !== 'boolean') throw badField('pin', 'expected true or false')
  if (pane !== undefined && (typeof pane !== 'string' || !PANE.test(pane)))
    throw badField('pane', 'expected the id of a tmux pane, such as %3')
  const unused = pane === undefined ? undefined : NOT_FOR_PANES.find((name) => fields[name] !== undefined)
  if (unused !== undefined) throw badField(unused, 'a pane was given')
  const mode = readChoice(fields, 'mode', MODES, pane === undefined ? 'pipe' : 'pty')
  const cells = { min: 1, max: MAX_CELLS }
  return {
    createId,
    env: readEnv(fields['env']),
    cols: readInteger(fields, 'cols', { ...cells, fallback: 80 }),
    rows: readInteger(fields, 'rows', { ...cells, fallback: 24 }),
    create: {
      argv: readArgv(fields),
      pane,
      mode,
      cwd,
      keepSeconds: readInteger(fields, 'keep', { min: 1, max: MAX_KEEP_SECONDS, fallback: KEEP_SECONDS }),
      lifetimeSeconds: readTimeout(fields, 'lifetime'),
      idleSeconds: readTimeout(fields, 'idle'),
      overflow: readChoice(fields, 'overflow', OVERFLOWS, defaultOverflow(mode)),
      isPinned: pin,
    },
  }
}
