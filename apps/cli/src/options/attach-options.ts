import { limits, OVERFLOWS, type Role, ROLES } from '@sandwire/protocol'
import { DEFAULT_ESCAPE, type EscapeKey, parseEscapeKey } from '../attach/escape-key.ts'
import { UsageError } from '../errors/errors.ts'
import { parseAddress } from '../server/address.ts'
import { ParsedOptions } from './parse-options.ts'

/** A command template of the server, and its parameters. */
interface TemplateOptions {
  readonly template: string | undefined
  readonly params: Readonly<Record<string, string>>
}

/** The options of an attachment. */
export interface RunOptions extends TemplateOptions {
  readonly kind: 'run'
  /** URL of the attach route, without credentials. */
  readonly url: URL
  /** The address as the user typed it. */
  readonly typedUrl: string
  readonly sandbox: string | undefined
  /** Whether to create the sandbox if it does not exist. */
  readonly mayCreate: boolean
  readonly session: string | undefined
  /** Undefined: the login shell. */
  readonly cmd: string | undefined
  readonly args: readonly string[]
  /** A pane of tmux instead of a command. */
  readonly pane: string | undefined
  /** Undefined: a terminal if stdin and stdout are terminals. */
  readonly isTty: boolean | undefined
  readonly role: Role | undefined
  readonly takesOver: boolean
  readonly cwd: string | undefined
  /** Undefined values are copied from the environment of the CLI. */
  readonly env: readonly (readonly [name: string, value: string | undefined])[]
  readonly keepSeconds: number | undefined
  readonly lifetimeSeconds: number | undefined
  readonly idleSeconds: number | undefined
  readonly overflow: 'block' | 'trim' | undefined
  /** Keeps the sandbox running while the command runs. */
  readonly isPinned: boolean
  readonly escape: EscapeKey | null
  readonly retryForMs: number
  readonly token: string | undefined
  readonly tokenFile: string | undefined
  readonly name: string | undefined
  readonly isQuiet: boolean
}

export type Arguments =
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  | { readonly kind: 'invalid'; readonly message: string; readonly hint: string }
  | RunOptions

const HELP_HINT = 'sbx-stdio --help'
const DEFAULT_RETRY_SECONDS = 600
const MAX_RETRY_SECONDS = limits.MAX_KEEP_SECONDS

const OPTIONS = {
  sandbox: 'value',
  create: 'value',
  'no-create': 'flag',
  session: 'value',
  cmd: 'value',
  arg: 'values',
  template: 'value',
  param: 'values',
  pane: 'value',
  role: 'value',
  cwd: 'value',
  env: 'values',
  keep: 'value',
  lifetime: 'value',
  idle: 'value',
  overflow: 'value',
  escape: 'value',
  'retry-for': 'value',
  token: 'value',
  'token-file': 'value',
  name: 'value',
  tty: 'flag',
  'no-tty': 'flag',
  take: 'flag',
  pin: 'flag',
  quiet: 'flag',
  help: 'flag',
  version: 'flag',
} as const
type AttachOptions = ParsedOptions<typeof OPTIONS>
type ValuedName = Parameters<AttachOptions['value']>[0]

/** Options that only apply when a process is started. */
const CREATE_ONLY = [
  'cmd',
  'arg',
  'template',
  'param',
  'pane',
  'cwd',
  'env',
  'keep',
  'lifetime',
  'idle',
  'overflow',
  'create',
] as const

function parseChoice<const T extends string>(
  name: ValuedName,
  options: AttachOptions,
  choices: readonly T[],
): T | undefined {
  const value = options.value(name)
  const found = choices.find((choice) => choice === value)
  if (value !== undefined && found === undefined)
    throw new UsageError(`Option "--${name}" must be ${choices.join(' or ')}`)
  return found
}

function parseSeconds(name: ValuedName, options: AttachOptions, max: number): number | undefined {
  const value = options.value(name)
  if (value === undefined) return undefined
  const number = /^(0|[1-9][0-9]{0,8})$/.test(value) ? Number(value) : Number.NaN
  if (!(number <= max)) throw new UsageError(`Option "--${name}" must be whole seconds from 0 to ${max}`)
  return number
}

function parseTimeout(name: ValuedName, options: AttachOptions): number | undefined {
  const seconds = parseSeconds(name, options, limits.MAX_SESSION_SECONDS)
  if (seconds === 0) throw new UsageError(`Option "--${name}" must be at least 1 second`)
  return seconds
}

function parseMayCreate(options: AttachOptions): boolean {
  const create = parseChoice('create', options, ['0', '1'])
  if (options.has('no-create') && create === '1')
    throw new UsageError('Use either --create=1 or --no-create, not both')
  return !options.has('no-create') && create !== '0'
}

/** Options whose empty value is an unset shell variable, most likely. */
const NEVER_EMPTY = ['sandbox', 'session', 'cmd', 'template', 'cwd'] as const

function refuseEmpty(options: AttachOptions): void {
  const empty = NEVER_EMPTY.find((name) => options.value(name) === '')
  if (empty !== undefined) throw new UsageError(`Option "--${empty}" needs a value`)
}

function parseCommand(options: AttachOptions): { cmd: string | undefined; args: readonly string[] } {
  const cmd = options.value('cmd')
  const args = options.values('arg')
  if (cmd === undefined && args.length > 0) throw new UsageError('Option "--arg" needs "--cmd"')
  if (options.command === undefined) return { cmd, args }
  if (cmd !== undefined) throw new UsageError('Give the command with --cmd or after --, not both')
  const [first, ...others] = options.command
  if (first === undefined || first === '') throw new UsageError('There is no command after "--"')
  return { cmd: first, args: others }
}

/** Options that the template itself sets. */
const SET_BY_TEMPLATE = ['pane', 'cwd', 'env'] as const

function parseTemplateOptions(options: AttachOptions): TemplateOptions {
  const template = options.value('template')
  const given = options.values('param')
  if (template === undefined) {
    if (given.length > 0) throw new UsageError('Option "--param" needs "--template"')
    return { template, params: {} }
  }
  if ((options.command ?? options.value('cmd')) !== undefined)
    throw new UsageError('Give a command or a template, not both')
  const extra = SET_BY_TEMPLATE.find((name) => options.value(name) !== undefined)
  if (extra !== undefined) throw new UsageError(`Option "--${extra}" cannot be used with "--template"`)
  if (options.has('tty') || options.has('no-tty'))
    throw new UsageError('Options "--tty" and "--no-tty" cannot be used with "--template"')
  const params = new Map<string, string>()
  for (const param of given) {
    const at = param.indexOf('=')
    if (at < 1) throw new UsageError('Option "--param" must be NAME=VALUE', 'sbx-stdio templates')
    const name = param.slice(0, at)
    if (params.has(name)) throw new UsageError(`Parameter "${name}" is given twice`)
    params.set(name, param.slice(at + 1))
  }
  return { template, params: Object.fromEntries(params) }
}

function parsePane(options: AttachOptions): string | undefined {
  const pane = options.value('pane')
  if (pane === undefined) return undefined
  if (!/^%\d{1,9}$/.test(pane))
    throw new UsageError('Option "--pane" must be a pane such as %3', 'sbx-stdio tmux SANDBOX list')
  if ((options.command ?? options.value('cmd') ?? options.value('cwd')) !== undefined)
    throw new UsageError('Give a command or a pane, not both')
  if (options.has('no-tty')) throw new UsageError('Option "--no-tty" cannot be used with "--pane"')
  return pane
}

/** Parses `NAME=VALUE`, or `NAME` for a value to copy from the environment of the CLI. Throws `UsageError`. */
export function parseEnvOptions(given: readonly string[]): (readonly [string, string | undefined])[] {
  return given.map((option) => {
    const at = option.indexOf('=')
    const name = at < 0 ? option : option.slice(0, at)
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      throw new UsageError('Option "--env" must be NAME=VALUE or NAME')
    if (name.length > limits.MAX_ENV_NAME_CHARS)
      throw new UsageError(`The name of a variable may have ${limits.MAX_ENV_NAME_CHARS} characters at most`)
    return [name, at < 0 ? undefined : option.slice(at + 1)]
  })
}

type Variables = Readonly<Record<string, string>>

const FEWER_HINT = 'set the others in the command: -- bash -c "export NAME=VALUE ...; COMMAND"'
const FILE_HINT = 'copy long values to the sandbox as a file: sbx-stdio cp FILE SANDBOX:'

/** Refuses variables that no server accepts: too many, or one that is too long. Throws `UsageError`. */
export function validateVariables(env: Variables): void {
  const entries = Object.entries(env)
  if (entries.length > limits.MAX_ENV_ENTRIES)
    throw new UsageError(
      `Too many variables: ${entries.length}, at most ${limits.MAX_ENV_ENTRIES} are allowed`,
      FEWER_HINT,
    )
  const long = entries.find(([, value]) => value.length > limits.MAX_ENV_CHARS)
  if (long !== undefined)
    throw new UsageError(
      `Variable "${long[0]}" is too long: ${long[1].length} characters, at most ${limits.MAX_ENV_CHARS} are allowed`,
      FILE_HINT,
    )
}

/** Refuses variables that do not fit into a hello message. Throws `UsageError`. */
export function validateEnv(env: Variables): void {
  validateVariables(env)
  const { length } = JSON.stringify(env)
  if (length > limits.MAX_ENV_TOTAL_CHARS)
    throw new UsageError(
      `The variables are too long: ${length} characters in total, at most ${limits.MAX_ENV_TOTAL_CHARS} are allowed`,
      FILE_HINT,
    )
}

function parseEscape(options: AttachOptions): EscapeKey | null {
  const escape = parseEscapeKey(options.value('escape') ?? DEFAULT_ESCAPE)
  if (escape === undefined) throw new UsageError('Option "--escape" must be a key such as ^A, or none')
  return escape
}

function parseName(options: AttachOptions): string | undefined {
  const name = options.value('name')
  if (name === undefined || (name.length <= limits.MAX_NAME_CHARS && !/[\p{C}\p{Zl}\p{Zp}]/u.test(name)))
    return name
  throw new UsageError(`Option "--name" must be up to ${limits.MAX_NAME_CHARS} printable characters`)
}

function parseUrl({ positionals }: AttachOptions): { url: URL; typedUrl: string } {
  const [typedUrl, second] = positionals
  if (typedUrl === undefined) throw new UsageError('No address is given')
  if (second !== undefined)
    throw new UsageError('A command must be given after "--"', `sbx-stdio URL -- ${second}`)
  if (/^[a-z]+$/.test(typedUrl)) throw new UsageError(`"${typedUrl}" is neither a command nor an address`)
  const address = parseAddress(typedUrl)
  if (!address.isOk) throw new UsageError(address.message, address.hint)
  return { url: address.url, typedUrl }
}

function refuseStartOptions(options: AttachOptions): void {
  const extra =
    CREATE_ONLY.find((name) => options.value(name) !== undefined) ??
    (options.command === undefined ? (options.has('pin') ? 'pin' : undefined) : 'cmd')
  if (extra !== undefined)
    throw new UsageError(
      `Option "--${extra}" cannot be used with "--session": the session is already running`,
    )
}

function parse(argv: readonly string[]): Arguments {
  const options = new ParsedOptions(argv, OPTIONS, 'arg')
  if (options.has('help')) return { kind: 'help' }
  if (options.has('version') || (argv.length === 1 && argv[0] === 'version')) return { kind: 'version' }
  const address = parseUrl(options)
  refuseEmpty(options)
  const session = options.value('session')
  const command = parseCommand(options)
  if (session !== undefined) refuseStartOptions(options)
  if (options.has('tty') && options.has('no-tty'))
    throw new UsageError('Use either --tty or --no-tty, not both')
  if (options.value('token') !== undefined && options.value('token-file') !== undefined)
    throw new UsageError('Use either --token or --token-file, not both')
  return {
    kind: 'run',
    ...address,
    ...command,
    ...parseTemplateOptions(options),
    pane: parsePane(options),
    session,
    sandbox: options.value('sandbox'),
    mayCreate: parseMayCreate(options),
    isTty: options.has('tty') || options.has('no-tty') ? options.has('tty') : undefined,
    role: parseChoice('role', options, ROLES),
    takesOver: options.has('take'),
    cwd: options.value('cwd'),
    env: parseEnvOptions(options.values('env')),
    keepSeconds: parseSeconds('keep', options, limits.MAX_KEEP_SECONDS),
    lifetimeSeconds: parseTimeout('lifetime', options),
    idleSeconds: parseTimeout('idle', options),
    overflow: parseChoice('overflow', options, OVERFLOWS),
    isPinned: options.has('pin'),
    escape: parseEscape(options),
    retryForMs: (parseSeconds('retry-for', options, MAX_RETRY_SECONDS) ?? DEFAULT_RETRY_SECONDS) * 1000,
    token: options.value('token'),
    tokenFile: options.value('token-file'),
    name: parseName(options),
    isQuiet: options.has('quiet'),
  }
}

/** Parses the command line of an attachment. Usage errors are returned as a value. */
export function parseArguments(argv: readonly string[]): Arguments {
  try {
    return parse(argv)
  } catch (error) {
    if (error instanceof UsageError)
      return { kind: 'invalid', message: error.message, hint: error.hint ?? HELP_HINT }
    throw error
  }
}
