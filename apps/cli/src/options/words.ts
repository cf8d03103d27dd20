import { limits } from '@sandwire/protocol'

/** How often an option may be given, and whether it has a value. */
type OptionKind = 'flag' | 'once' | 'repeatable'

/** The options of a command line, by name without dashes. */
export type OptionTable = Readonly<Record<string, OptionKind>>

type Valued<T extends OptionTable> = { [K in keyof T]: T[K] extends 'flag' ? never : K }[keyof T] & string
type Flag<T extends OptionTable> = { [K in keyof T]: 'flag' extends T[K] ? K : never }[keyof T] & string

/** The command line is wrong; said once, with what to do instead or else a hint at the help. */
export class UsageError extends Error {
  readonly hint: string | undefined

  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}

/** Letters that stand for options, where there are such. */
const SHORT: Readonly<Record<string, string>> = {
  h: 'help',
  l: 'long',
  a: 'all',
  r: 'recursive',
}

/** ParsedOptions of a command line, sorted but not yet understood. */
export class ParsedOptions<const T extends OptionTable> {
  readonly positionals: string[] = []
  /** What follows `--`. */
  command: readonly string[] | undefined
  readonly #table: T
  readonly #values = new Map<string, string[]>()
  readonly #flags = new Set<string>()
  /** Option whose value may begin with dashes. */
  readonly #anything: string | undefined

  /** Throws `UsageError`. */
  constructor(argv: readonly string[], table: T, anything?: Valued<T>) {
    this.#table = table
    this.#anything = anything
    const rest = [...argv]
    for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
      if (word === '--') {
        this.command = rest
        return
      }
      const letters = this.#letters(word)
      if (letters !== undefined) for (const name of letters) this.#flags.add(name)
      else if (word.startsWith('-') && word !== '-') this.#option(word, rest)
      else this.positionals.push(word)
    }
  }

  has(name: Flag<T>): boolean {
    return this.#flags.has(name)
  }

  all(name: Valued<T>): readonly string[] {
    return this.#values.get(name) ?? []
  }

  one(name: Valued<T>): string | undefined {
    return this.all(name)[0]
  }

  /** The options that letters stand for, one or several behind a dash; undefined when one of them stands for none. */
  #letters(word: string): readonly string[] | undefined {
    if (!/^-[a-z]+$/.test(word)) return undefined
    const names = Array.from(word.slice(1), (letter) => SHORT[letter] ?? '')
    return names.every((name) => this.#table[name] === 'flag') ? names : undefined
  }

  #option(word: string, rest: string[]): void {
    const [, name = '', value] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? []
    const kind = Object.hasOwn(this.#table, name) ? this.#table[name] : undefined
    if (kind === 'flag' && value === undefined) {
      this.#flags.add(name)
      return
    }
    if (kind === undefined || kind === 'flag') throw new UsageError(`Unknown option "${word.split('=')[0]}"`)
    const given = value ?? rest.shift()
    // An argument of the command may look like anything; elsewhere a further option means that a value was forgotten.
    const isMissing =
      given === undefined || (value === undefined && name !== this.#anything && given.startsWith('--'))
    if (isMissing) throw new UsageError(`Option "--${name}" needs a value`)
    const earlier = this.#values.get(name) ?? []
    if (earlier.length > 0 && kind === 'once') throw new UsageError(`Option "--${name}" is given twice`)
    this.#values.set(name, [...earlier, given])
  }
}

/** Reads `NAME=VALUE`, or `NAME` for a value that is taken from this program's environment. */
export function parseEnvOptions(words: readonly string[]): (readonly [string, string | undefined])[] {
  return words.map((word) => {
    const at = word.indexOf('=')
    const name = at < 0 ? word : word.slice(0, at)
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      throw new UsageError('Option "--env" takes NAME=VALUE or NAME')
    if (name.length > limits.MAX_ENV_NAME_CHARS)
      throw new UsageError(`The name of a variable has at most ${limits.MAX_ENV_NAME_CHARS} characters`)
    return [name, at < 0 ? undefined : word.slice(at + 1)]
  })
}
