import { parseArgs } from 'node:util'
import { DEFAULT_PORT } from './configuration.ts'

/** The parsed command line. `configuration.ts` validates the values together with the environment. */
export type Arguments =
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  | { readonly kind: 'wrong'; readonly message: string }
  | { readonly kind: 'up'; readonly flags: UpFlags }
  | { readonly kind: 'doctor'; readonly flags: PathFlags }
  | { readonly kind: 'signin'; readonly flags: PathFlags }
  | { readonly kind: 'agents'; readonly flags: PathFlags; readonly name: string; readonly version?: string }
  /** `file`: default, a name with the time, in the current folder. */
  | { readonly kind: 'backup'; readonly flags: PathFlags; readonly file?: string }
  | { readonly kind: 'restore'; readonly flags: PathFlags; readonly file: string }

/** Which installation to use. */
export interface PathFlags {
  readonly data?: string
  readonly workspace?: string
}

export interface UpFlags extends PathFlags {
  readonly port?: string
  /** Prints only the URL. */
  readonly isQuiet: boolean
  /** Creates a new local token; the old one stops working. */
  readonly isNewToken: boolean
  /** Starts although databases of the data folder are missing. */
  readonly acceptsMissing: boolean
  /** Leaves sandboxes running on exit, for the next start. */
  readonly keepsSandboxes: boolean
}

const PATH_OPTIONS = { data: { type: 'string' }, workspace: { type: 'string' } } as const
const UP = {
  ...PATH_OPTIONS,
  port: { type: 'string' },
  quiet: { type: 'boolean', default: false },
  'new-token': { type: 'boolean', default: false },
  'keep-sandboxes': { type: 'boolean', default: false },
  'accept-missing': { type: 'boolean', default: false },
} as const

/** Throws for an empty value, for example from an unset variable: as a path it would mean the current folder. */
function requireValues<T extends Readonly<Record<string, string | boolean | undefined>>>(values: T): T {
  const empty = Object.keys(values).find((name) => values[name] === '')
  if (empty !== undefined) throw new Error(`Option --${empty} is empty`)
  return values
}

function parsePathFlags(argv: readonly string[]): PathFlags {
  const { values } = parseArgs({ args: [...argv], strict: true, options: PATH_OPTIONS })
  return { ...requireValues(values) }
}

function parseUp(argv: readonly string[]): UpFlags {
  const { values } = parseArgs({ args: [...argv], strict: true, options: UP })
  const {
    quiet,
    'new-token': isNewToken,
    'keep-sandboxes': keepsSandboxes,
    'accept-missing': acceptsMissing,
    ...rest
  } = requireValues(values)
  return { ...rest, isQuiet: quiet, isNewToken, keepsSandboxes, acceptsMissing }
}

/** `agents install NAME[@VERSION]`. */
function parseAgents(argv: readonly string[]): Arguments {
  const { flags, positionals } = parsePositionals(argv)
  const [verb, agent = '', ...rest] = positionals
  const [, name, version] = /^([a-z0-9-]+)(?:@(.+))?$/.exec(agent) ?? []
  if (verb !== 'install' || name === undefined || rest.length > 0)
    return { kind: 'wrong', message: 'expected: agents install NAME[@VERSION]' }
  return { kind: 'agents', flags, name, ...(version !== undefined && { version }) }
}

function parseBackup(kind: 'backup' | 'restore', argv: readonly string[]): Arguments {
  const { flags, positionals } = parsePositionals(argv)
  const [file, ...more] = positionals
  if (more.length > 0 || file === '') return { kind: 'wrong', message: `${kind} takes one file` }
  if (kind === 'backup') return { kind, flags, ...(file !== undefined && { file }) }
  return file === undefined ? { kind: 'wrong', message: 'restore needs a file' } : { kind, flags, file }
}

function parsePositionals(argv: readonly string[]): { flags: PathFlags; positionals: readonly string[] } {
  const options = { data: PATH_OPTIONS.data }
  const { values, positionals } = parseArgs({
    args: [...argv],
    strict: true,
    allowPositionals: true,
    options,
  })
  return { flags: { ...requireValues(values) }, positionals }
}

function parseCommand(command: string, argv: readonly string[]): Arguments {
  switch (command) {
    case 'up':
      return { kind: 'up', flags: parseUp(argv) }
    case 'doctor':
    case 'signin':
      return { kind: command, flags: parsePathFlags(argv) }
    case 'agents':
      return parseAgents(argv)
    case 'backup':
    case 'restore':
      return parseBackup(command, argv)
    case 'version':
      return argv.length === 0
        ? { kind: 'version' }
        : { kind: 'wrong', message: 'version takes no arguments' }
    default:
      return { kind: 'wrong', message: `unknown command "${command}"` }
  }
}

/** Parses the command line; errors are returned, not thrown. */
export function parseArguments(argv: readonly string[]): Arguments {
  const [command, ...rest] = argv
  if (command === undefined) return { kind: 'wrong', message: 'no command' }
  if (['--help', '-h', 'help'].includes(command)) return { kind: 'help' }
  if (command === '--version') return { kind: 'version' }
  if (rest.includes('--help') || rest.includes('-h')) return { kind: 'help' }
  try {
    return parseCommand(command, rest)
  } catch (error) {
    const message = error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''
    // Drops Node's advice about `--`, which does not apply here.
    return { kind: 'wrong', message: message.replace(/\. To specify a positional.*$/, '') }
  }
}

export const HELP = `sandwire: run Sandwire on this machine

Usage: npx sandwire COMMAND [options]

  up         start the control plane and local sandboxes (also: npm start)
  signin     print a new sign-in link for the running server
  backup     write a copy of the data folder's databases and keys to a file, also while the server runs
  restore    make a new data folder from such a file
  doctor     check this machine, and try to break out of a temporary sandbox
  agents install NAME[@VERSION]
             install the program of a coding agent, such as claude, for runs
  version    print the version

Options of up
  --port N             port to listen on (default: ${DEFAULT_PORT}; 0 picks a free port)
  --data DIR           data folder (default: .sandwire in the current folder)
  --workspace DIR      serve this folder as the only sandbox, "local"
  --keep-sandboxes     leave sandboxes running on exit
  --new-token          create a new local token; the old one stops working
  --accept-missing     start although databases of the data folder are missing
  --quiet              print only the URL

doctor and signin accept --data and --workspace; agents, backup [FILE] and restore FILE accept --data.

Environment
  SANDWIRE_PORT, SANDWIRE_DATA     same as --port and --data
  SANDWIRE_ISOLATION               bubblewrap or none (default: the strongest that works)
  SANDWIRE_PROVIDER                container: run sandboxes in Docker containers (DOCKER_HOST)
  SANDWIRE_IMAGE, _EGRESS_IMAGE    images of containers and of their network sidecar
  SANDWIRE_BIND                    address to listen on (default: 127.0.0.1 and ::1); others need an issuer
  SANDWIRE_PUBLIC_URL              public https origin
  SANDWIRE_EMBED_ORIGINS           origins of pages that may embed terminals
  SANDWIRE_TLS_CERT, _KEY          PEM files; without them, a proxy must terminate TLS
  SANDWIRE_ISSUER                  OpenID issuer: a preset or a URL; see docs/operations.md
  SANDWIRE_SETTINGS                settings file (default: settings.json in the data folder)
  JWT_SECRET, API_TOKEN            authenticate services; also JWT_SECRET_FILE, API_TOKEN_FILE
  ANTHROPIC_API_KEY                key of the model API for coding agents; also ANTHROPIC_API_KEY_FILE,
                                   CLAUDE_CODE_OAUTH_TOKEN; see docs/agents.md
  WORKSPACE_MODE                   local: serve the current folder, like --workspace .
`
