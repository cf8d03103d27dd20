import { parseArgs } from 'node:util'
import { DEFAULT_PORT } from './configuration.ts'

/** What the command line asks for. Values are still text: `configuration.ts` judges them with the environment. */
export type Arguments =
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  | { readonly kind: 'wrong'; readonly message: string }
  | { readonly kind: 'up'; readonly flags: UpFlags }
  | { readonly kind: 'doctor'; readonly flags: PathFlags }
  | { readonly kind: 'signin'; readonly flags: PathFlags }

/** Which installation is meant. */
export interface PathFlags {
  readonly data?: string
  readonly workspace?: string
}

export interface UpFlags extends PathFlags {
  readonly port?: string
  /** Prints the address alone. */
  readonly isQuiet: boolean
  /** Makes a new local token; whoever has the old one is out. */
  readonly isNewToken: boolean
  /** Leaves the sandboxes running at the end, for the next start. */
  readonly keepsSandboxes: boolean
}

const PATH_OPTIONS = { data: { type: 'string' }, workspace: { type: 'string' } } as const
const UP = {
  ...PATH_OPTIONS,
  port: { type: 'string' },
  quiet: { type: 'boolean', default: false },
  'new-token': { type: 'boolean', default: false },
  'keep-sandboxes': { type: 'boolean', default: false },
} as const

/** Throws for a value that is nothing, as of a variable that is not set: it would mean the current folder. */
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
  const { quiet, 'new-token': isNewToken, 'keep-sandboxes': keepsSandboxes, ...rest } = requireValues(values)
  return { ...rest, isQuiet: quiet, isNewToken, keepsSandboxes }
}

function parseCommand(command: string, argv: readonly string[]): Arguments {
  switch (command) {
    case 'up':
      return { kind: 'up', flags: parseUp(argv) }
    case 'doctor':
    case 'signin':
      return { kind: command, flags: parsePathFlags(argv) }
    case 'version':
      return argv.length === 0
        ? { kind: 'version' }
        : { kind: 'wrong', message: 'version takes nothing further' }
    default:
      return { kind: 'wrong', message: `no such command: "${command}"` }
  }
}

/** Decodes the command line; what is wrong with it is a value. */
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
    // Node's advice about `--` is of no use here.
    return { kind: 'wrong', message: message.replace(/\. To specify a positional.*$/, '') }
  }
}

export const HELP = `sandwire: runs Sandwire on this machine

Usage: npx sandwire COMMAND [options]

  up         starts it: control plane, local sandboxes, one address (also: npm start)
  signin     prints a fresh sign-in link of the Sandwire that runs
  doctor     says what this machine can do and tries to break out of a throwaway sandbox
  version    prints the version

Options of up
  --port N             where to listen (${DEFAULT_PORT}; 0 picks a free port)
  --data DIR           where everything is kept (.sandwire in the current folder)
  --workspace DIR      serves this folder as the one sandbox, "local"
  --keep-sandboxes     leaves sandboxes running at the end, for the next start
  --new-token          makes a new local token; the old one stops working
  --quiet              prints the address alone

doctor and signin take --data and --workspace as up does.

Environment
  SANDWIRE_PORT, SANDWIRE_DATA     as --port and --data
  SANDWIRE_ISOLATION               bubblewrap or none; without it the best this machine has
  SANDWIRE_PROVIDER                container: sandboxes are containers of a Docker engine (DOCKER_HOST)
  SANDWIRE_IMAGE, _EGRESS_IMAGE    their image, and the one that workerd puts beside each
  SANDWIRE_BIND                    address to listen on (default: 127.0.0.1 and ::1); others need an issuer
  SANDWIRE_PUBLIC_URL              the origin that people use, with https
  SANDWIRE_EMBED_ORIGINS           origins of pages of yours that may hold a terminal, with a ticket
  SANDWIRE_TLS_CERT, _KEY          files in PEM; without them a proxy speaks TLS
  SANDWIRE_ISSUER                  who says who people are: a preset or a URL; docs/operations.md has the rest
  SANDWIRE_SETTINGS                settings file (default: settings.json in the data folder)
  JWT_SECRET, API_TOKEN            let services in; as JWT_SECRET_FILE and API_TOKEN_FILE from files
  WORKSPACE_MODE                   local: as --workspace with the current folder
`
