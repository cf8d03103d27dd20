import { limits, type Role, ROLES } from '@sandwire/protocol'
import { DEFAULT_ESCAPE, type EscapeKey, parseEscapeKey } from '../attach/escape-key.ts'
import { parseAddress } from '../server/server-address.ts'
import { type ChosenTemplate, readTemplate } from './template-option.ts'
import { readEnvOption, Words, Wrong } from './words.ts'

/** What the command line asks for. */
export interface RunOptions extends ChosenTemplate {
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
  readonly isTaking: boolean
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
type AttachWords = Words<typeof OPTIONS>
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
    throw new Wrong(`Option "--${name}" takes ${options.join(' or ')}`)
  return found
}

function seconds(name: ValuedName, words: AttachWords, max: number): number | undefined {
  const value = words.one(name)
  if (value === undefined) return undefined
  const number = /^(0|[1-9][0-9]{0,8})$/.test(value) ? Number(value) : Number.NaN
  if (!(number <= max)) throw new Wrong(`Option "--${name}" takes whole seconds from 0 to ${max}`)
  return number
}

function readMayCreate(words: AttachWords): boolean {
  const create = oneOf('create', words, ['0', '1'])
  if (words.has('no-create') && create === '1') throw new Wrong('Give --create=1 or --no-create, not both')
  return !words.has('no-create') && create !== '0'
}

/** Options whose value cannot be empty, as that of a variable that is not set is. */
const NEVER_EMPTY = ['sandbox', 'session', 'cmd', 'template', 'cwd'] as const

function refuseEmpty(words: AttachWords): void {
  const empty = NEVER_EMPTY.find((name) => words.one(name) === '')
  if (empty !== undefined) throw new Wrong(`Option "--${empty}" needs a value`)
}

function readCommand(words: AttachWords): { cmd: string | undefined; args: readonly string[] } {
  const cmd = words.one('cmd')
  const args = words.all('arg')
  if (cmd === undefined && args.length > 0) throw new Wrong('Option "--arg" needs "--cmd"')
  if (words.command === undefined) return { cmd, args }
  if (cmd !== undefined) throw new Wrong('Give the command with --cmd or behind --, not both')
  const [first, ...others] = words.command
  if (first === undefined || first === '') throw new Wrong('There is no command behind "--"')
  return { cmd: first, args: others }
}

function readEscape(words: AttachWords): EscapeKey | null {
  const escape = parseEscapeKey(words.one('escape') ?? DEFAULT_ESCAPE)
  if (escape === undefined) throw new Wrong('Option "--escape" takes a key such as ^A, or none')
  return escape
}

function readName(words: AttachWords): string | undefined {
  const name = words.one('name')
  if (name === undefined || (name.length <= limits.MAX_NAME_CHARS && !/[\p{C}\p{Zl}\p{Zp}]/u.test(name)))
    return name
  throw new Wrong(`Option "--name" takes up to ${limits.MAX_NAME_CHARS} printable characters`)
}

function readUrl({ positionals }: AttachWords): { url: URL; typedUrl: string } {
  const [typedUrl, second] = positionals
  if (typedUrl === undefined) throw new Wrong('No address is given')
  if (second !== undefined) throw new Wrong('A command stands behind "--"', `sbx-stdio URL -- ${second}`)
  if (/^[a-z]+$/.test(typedUrl)) throw new Wrong(`"${typedUrl}" is neither a command nor an address`)
  const address = parseAddress(typedUrl)
  if (!address.isOk) throw new Wrong(address.message, address.hint)
  return { url: address.url, typedUrl }
}

function read(argv: readonly string[]): Arguments {
  const words = new Words(argv, OPTIONS, 'arg')
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
      throw new Wrong(`Option "--${extra}" does not go with "--session": the session exists already`)
  }
  if (words.has('tty') && words.has('no-tty')) throw new Wrong('Give --tty or --no-tty, not both')
  if (words.one('token') !== undefined && words.one('token-file') !== undefined)
    throw new Wrong('Give --token or --token-file, not both')
  return {
    kind: 'run',
    ...address,
    ...command,
    ...readTemplate(words),
    session,
    sandbox: words.one('sandbox'),
    mayCreate: readMayCreate(words),
    isTty: words.has('tty') || words.has('no-tty') ? words.has('tty') : undefined,
    role: oneOf('role', words, ROLES),
    isTaking: words.has('take'),
    cwd: words.one('cwd'),
    env: readEnvOption(words.all('env')),
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
    if (error instanceof Wrong)
      return { kind: 'wrong', message: error.message, hint: error.hint ?? HELP_HINT }
    throw error
  }
}
