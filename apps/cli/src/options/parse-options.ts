import { parseArgs } from 'node:util'
import { UsageError } from '../errors/errors.ts'

/** Whether an option has a value, and may be repeated. */
type OptionKind = 'flag' | 'value' | 'values'

/** The options of a command, by name without dashes. */
export type OptionTable = Readonly<Record<string, OptionKind>>

type Valued<T extends OptionTable> = { [K in keyof T]: T[K] extends 'flag' ? never : K }[keyof T] & string
type Flag<T extends OptionTable> = { [K in keyof T]: 'flag' extends T[K] ? K : never }[keyof T] & string

/** Short forms of flags, for commands that have them. */
const SHORT_FORMS: Readonly<Record<string, string>> = { help: 'h', long: 'l', all: 'a', recursive: 'r' }

function toParseArgsOption(name: string, kind: OptionKind) {
  const short = kind === 'flag' && Object.hasOwn(SHORT_FORMS, name) ? SHORT_FORMS[name] : undefined
  return {
    type: kind === 'flag' ? ('boolean' as const) : ('string' as const),
    ...(short === undefined ? {} : { short }),
  }
}

/** The options and positional arguments of a command line, with values not yet validated. */
export class ParsedOptions<const T extends OptionTable> {
  readonly positionals: string[] = []
  /** The arguments after `--`; undefined without it. */
  readonly command: readonly string[] | undefined
  readonly #values = new Map<string, string[]>()
  readonly #flags = new Set<string>()

  /** Values of `verbatim` may begin with dashes. Throws `UsageError`. */
  constructor(argv: readonly string[], table: T, verbatim?: Valued<T>) {
    const options = Object.fromEntries(
      Object.entries(table).map(([name, kind]) => [name, toParseArgsOption(name, kind)] as const),
    )
    const { tokens } = parseArgs({
      args: [...argv],
      options,
      strict: false,
      allowPositionals: true,
      tokens: true,
    })
    const terminator = tokens.find(({ kind }) => kind === 'option-terminator')
    this.command = terminator === undefined ? undefined : argv.slice(terminator.index + 1)
    for (const token of tokens) {
      if (token.kind === 'option-terminator') return
      if (token.kind === 'positional') {
        this.positionals.push(token.value)
        continue
      }
      const { name, value, inlineValue, index } = token
      const kind = Object.hasOwn(table, name) ? table[name] : undefined
      if (kind === undefined || (kind === 'flag' && value !== undefined))
        throw new UsageError(`Unknown option "${argv[index]?.split('=')[0] ?? name}"`)
      if (kind === 'flag') {
        this.#flags.add(name)
        continue
      }
      // A value that looks like an option means that the value was forgotten.
      const isMissing =
        value === undefined || (inlineValue === false && name !== verbatim && value.startsWith('--'))
      if (isMissing) throw new UsageError(`Option "--${name}" needs a value`)
      const earlier = this.#values.get(name) ?? []
      if (earlier.length > 0 && kind === 'value') throw new UsageError(`Option "--${name}" is given twice`)
      this.#values.set(name, [...earlier, value])
    }
  }

  has(name: Flag<T>): boolean {
    return this.#flags.has(name)
  }

  values(name: Valued<T>): readonly string[] {
    return this.#values.get(name) ?? []
  }

  value(name: Valued<T>): string | undefined {
    return this.values(name)[0]
  }
}
