import { limits, type Role, ROLES } from '@sandwire/protocol'
import { DEFAULT_ESCAPE, type EscapeKey, parseEscapeKey } from '../attach/escape-key.ts'
import { parseEnvOptions, ParsedOptions, UsageError } from './words.ts'
import { parseAddress } from '../server/address.ts'

/** Options that a template has to do with. */
type TemplateWords = Pick<
  ParsedOptions<{
    template: 'once'
    param: 'repeatable'
    cmd: 'once'
    cwd: 'once'
    env: 'repeatable'
    tty: 'flag'
    'no-tty': 'flag'
  }>,
  'all' | 'one' | 'has' | 'command'
>

/** A command that the server has ready, and what it is told. */
export interface TemplateOptions {
  readonly template: string | undefined
  readonly params: Readonly<Record<string, string>>
}

/** What a template says itself. */
const SAID_BY_TEMPLATE = ['cwd', 'env'] as const

/** Reads which template is meant, and what it is told. Throws `UsageError`. */
export function parseTemplateOptions(words: TemplateWords): TemplateOptions {
  const template = words.one('template')
  const given = words.all('param')
  if (template === undefined && given.length > 0) throw new UsageError('Option "--param" needs "--template"')
  if (template !== undefined && (words.command ?? words.one('cmd')) !== undefined)
    throw new UsageError('Give a command or a template, not both')
  const extra =
    template === undefined ? undefined : SAID_BY_TEMPLATE.find((name) => words.one(name) !== undefined)
  if (extra !== undefined)
    throw new UsageError(`Option "--${extra}" does not go with "--template", which says it`)
  if (template !== undefined && (words.has('tty') || words.has('no-tty')))
    throw new UsageError("Whether there is a terminal is the template's to say: leave --tty and --no-tty out")
  const params = new Map<string, string>()
  for (const word of given) {
    const at = word.indexOf('=')
    if (at < 1) throw new UsageError('Option "--param" takes NAME=VALUE', 'sbx-stdio templates')
    const name = word.slice(0, at)
    if (params.has(name)) throw new UsageError(`Parameter "${name}" is given twice`)
    params.set(name, word.slice(at + 1))
  }
  return { template, params: Object.fromEntries(params) }
}

type Variables = Readonly<Record<string, string>>

const FEWER = 'set the others where the command runs: -- bash -c "export NAME=VALUE ...; COMMAND"'
const AS_FILE = 'copy what is long to the sandbox as a file: sbx-stdio cp FILE SANDBOX:'

/** Refuses variables that no server takes: too many, or one that is too long. Throws `UsageError`. */
export function validateVariables(env: Variables): void {
  const entries = Object.entries(env)
  if (entries.length > limits.MAX_ENV_ENTRIES)
    throw new UsageError(
      `${entries.length} variables are too many: ${limits.MAX_ENV_ENTRIES} at most go along`,
      FEWER,
    )
  const long = entries.find(([, value]) => value.length > limits.MAX_ENV_CHARS)
  if (long !== undefined)
    throw new UsageError(
      `Variable "${long[0]}" is too long: it has ${long[1].length} characters, and ${limits.MAX_ENV_CHARS} at most go along`,
      AS_FILE,
    )
}

/** Refuses variables that do not fit into a hello. Throws `UsageError`. */
export function validateEnv(env: Variables): void {
  validateVariables(env)
  const { length } = JSON.stringify(env)
  if (length > limits.MAX_ENV_TOTAL_CHARS)
    throw new UsageError(
      `The variables are too long together: they have ${length} characters, and ${limits.MAX_ENV_TOTAL_CHARS} at most go along`,
      AS_FILE,
    )
}

/** What the command line asks for. */
export interface RunOptions extends TemplateOptions {
  readonly kind: 'run'
  /** Address of the attach route, without credentials. */
  readonly url: URL
  /** The address as it was typed, to be shown again. */
  readonly typedUrl: string
  readonly sandbox: string | undefined
  /** Whether a sandbox that does not exist yet is made. */
  readonly mayCreate: boolean
  readonly session: string | undefined
  /** Undefined means the login shell. */
  readonly cmd: string | undefined
  readonly args: readonly string[]
  /** Undefined means: when stdin and stdout are terminals. */
  readonly isTty: boolean | undefined
  readonly role: Role | undefined
  readonly takesOver: boolean
  readonly cwd: string | undefined
  /** Undefined values are taken from this program's environment. */
  readonly env: readonly (readonly [name: string, value: string | undefined])[]
  readonly keepSeconds: number | undefined
  readonly overflow: 'block' | 'trim' | undefined
  /** The sandbox stays awake while what is started runs. */
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
  | { readonly kind: 'wrong'; readonly message: string; readonly hint: string }
  | RunOptions

const HELP_HINT = 'sbx-stdio --help'
const DEFAULT_RETRY_SECONDS = 600
const MAX_RETRY_SECONDS = limits.MAX_KEEP_SECONDS

const OPTIONS = {
  sandbox: 'once',
  create: 'once',
  'no-create': 'flag',
  session: 'once',
  cmd: 'once',
  arg: 'repeatable',
  template: 'once',
  param: 'repeatable',
  role: 'once',
  cwd: 'once',
  env: 'repeatable',
  keep: 'once',
  overflow: 'once',
  escape: 'once',
  'retry-for': 'once',
  token: 'once',
  'token-file': 'once',
  name: 'once',
  tty: 'flag',
  'no-tty': 'flag',
  take: 'flag',
  pin: 'flag',
  quiet: 'flag',
  help: 'flag',
  version: 'flag',
} as const
type AttachWords = ParsedOptions<typeof OPTIONS>
type ValuedName = Parameters<AttachWords['one']>[0]

/** Options that say how to start a process, and so make no sense for one that runs. */
const CREATE_ONLY = ['cmd', 'arg', 'template', 'param', 'cwd', 'env', 'keep', 'overflow', 'create'] as const

function oneOf<const T extends string>(
  name: ValuedName,
  words: AttachWords,
  options: readonly T[],
): T | undefined {
  const value = words.one(name)
  const found = options.find((option) => option === value)
  if (value !== undefined && found === undefined)
    throw new UsageError(`Option "--${name}" takes ${options.join(' or ')}`)
  return found
}

function seconds(name: ValuedName, words: AttachWords, max: number): number | undefined {
  const value = words.one(name)
  if (value === undefined) return undefined
  const number = /^(0|[1-9][0-9]{0,8})$/.test(value) ? Number(value) : Number.NaN
  if (!(number <= max)) throw new UsageError(`Option "--${name}" takes whole seconds from 0 to ${max}`)
  return number
}

function readMayCreate(words: AttachWords): boolean {
  const create = oneOf('create', words, ['0', '1'])
  if (words.has('no-create') && create === '1')
    throw new UsageError('Give --create=1 or --no-create, not both')
  return !words.has('no-create') && create !== '0'
}

/** Options whose value cannot be empty, as that of a variable that is not set is. */
const NEVER_EMPTY = ['sandbox', 'session', 'cmd', 'template', 'cwd'] as const

function refuseEmpty(words: AttachWords): void {
  const empty = NEVER_EMPTY.find((name) => words.one(name) === '')
  if (empty !== undefined) throw new UsageError(`Option "--${empty}" needs a value`)
}

function readCommand(words: AttachWords): { cmd: string | undefined; args: readonly string[] } {
  const cmd = words.one('cmd')
  const args = words.all('arg')
  if (cmd === undefined && args.length > 0) throw new UsageError('Option "--arg" needs "--cmd"')
  if (words.command === undefined) return { cmd, args }
  if (cmd !== undefined) throw new UsageError('Give the command with --cmd or behind --, not both')
  const [first, ...others] = words.command
  if (first === undefined || first === '') throw new UsageError('There is no command behind "--"')
  return { cmd: first, args: others }
}

function readEscape(words: AttachWords): EscapeKey | null {
  const escape = parseEscapeKey(words.one('escape') ?? DEFAULT_ESCAPE)
  if (escape === undefined) throw new UsageError('Option "--escape" takes a key such as ^A, or none')
  return escape
}

function readName(words: AttachWords): string | undefined {
  const name = words.one('name')
  if (name === undefined || (name.length <= limits.MAX_NAME_CHARS && !/[\p{C}\p{Zl}\p{Zp}]/u.test(name)))
    return name
  throw new UsageError(`Option "--name" takes up to ${limits.MAX_NAME_CHARS} printable characters`)
}

function readUrl({ positionals }: AttachWords): { url: URL; typedUrl: string } {
  const [typedUrl, second] = positionals
  if (typedUrl === undefined) throw new UsageError('No address is given')
  if (second !== undefined) throw new UsageError('A command stands behind "--"', `sbx-stdio URL -- ${second}`)
  if (/^[a-z]+$/.test(typedUrl)) throw new UsageError(`"${typedUrl}" is neither a command nor an address`)
  const address = parseAddress(typedUrl)
  if (!address.isOk) throw new UsageError(address.message, address.hint)
  return { url: address.url, typedUrl }
}

function read(argv: readonly string[]): Arguments {
  const words = new ParsedOptions(argv, OPTIONS, 'arg')
  if (words.has('help')) return { kind: 'help' }
  if (words.has('version') || (argv.length === 1 && argv[0] === 'version')) return { kind: 'version' }
  const address = readUrl(words)
  refuseEmpty(words)
  const session = words.one('session')
  const command = readCommand(words)
  if (session !== undefined) {
    const extra =
      CREATE_ONLY.find((name) => words.one(name) !== undefined) ??
      (words.command === undefined ? (words.has('pin') ? 'pin' : undefined) : 'cmd')
    if (extra !== undefined)
      throw new UsageError(`Option "--${extra}" does not go with "--session": the session exists already`)
  }
  if (words.has('tty') && words.has('no-tty')) throw new UsageError('Give --tty or --no-tty, not both')
  if (words.one('token') !== undefined && words.one('token-file') !== undefined)
    throw new UsageError('Give --token or --token-file, not both')
  return {
    kind: 'run',
    ...address,
    ...command,
    ...parseTemplateOptions(words),
    session,
    sandbox: words.one('sandbox'),
    mayCreate: readMayCreate(words),
    isTty: words.has('tty') || words.has('no-tty') ? words.has('tty') : undefined,
    role: oneOf('role', words, ROLES),
    takesOver: words.has('take'),
    cwd: words.one('cwd'),
    env: parseEnvOptions(words.all('env')),
    keepSeconds: seconds('keep', words, limits.MAX_KEEP_SECONDS),
    overflow: oneOf('overflow', words, ['block', 'trim']),
    isPinned: words.has('pin'),
    escape: readEscape(words),
    retryForMs: (seconds('retry-for', words, MAX_RETRY_SECONDS) ?? DEFAULT_RETRY_SECONDS) * 1000,
    token: words.one('token'),
    tokenFile: words.one('token-file'),
    name: readName(words),
    isQuiet: words.has('quiet'),
  }
}

/** Decodes the command line; what is wrong with it is a value. */
export function parseArguments(argv: readonly string[]): Arguments {
  try {
    return read(argv)
  } catch (error) {
    if (error instanceof UsageError)
      return { kind: 'wrong', message: error.message, hint: error.hint ?? HELP_HINT }
    throw error
  }
}
