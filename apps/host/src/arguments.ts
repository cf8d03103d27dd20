import { parseArgs } from 'node:util'

/** What the command line asks for. Values are still text: `configuration.ts` judges them with the environment. */
export type Arguments =
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  | { readonly kind: 'wrong'; readonly message: string }
  | { readonly kind: 'up'; readonly flags: UpFlags }
  | { readonly kind: 'doctor'; readonly flags: PlaceFlags }
  | { readonly kind: 'signin'; readonly flags: PlaceFlags }

/** Which installation is meant. */
export interface PlaceFlags {
  readonly data?: string
  readonly workspace?: string
}

export interface UpFlags extends PlaceFlags {
  readonly port?: string
  /** Prints the address alone. */
  readonly isQuiet: boolean
  /** Makes a new local token; whoever has the old one is out. */
  readonly isNewToken: boolean
  /** Leaves the sandboxes running at the end, for the next start. */
  readonly keepsSandboxes: boolean
}

const PLACE = { data: { type: 'string' }, workspace: { type: 'string' } } as const
const UP = {
  ...PLACE,
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

function parsePlace(argv: readonly string[]): PlaceFlags {
  const { values } = parseArgs({ args: [...argv], strict: true, options: PLACE })
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
      return { kind: command, flags: parsePlace(argv) }
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
