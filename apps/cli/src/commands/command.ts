import type { Api } from '../api.ts'
import type { OptionTable } from '../words.ts'

/** Where a command speaks: data to stdout, talk to stderr. */
export interface CommandIo {
  readonly print: (data: string) => void
  readonly say: (talk: string) => void
  /** What to do next. */
  readonly hint: (advice: string) => void
  /** Asks a question that is answered with yes or no; undefined where nobody can be asked. */
  readonly confirm: ((question: string) => Promise<boolean>) | undefined
}

/** What a command works with. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly io: CommandIo
  readonly nowMs: number
  /** Print the answer of the API as it is. */
  readonly isJson: boolean
  readonly api: Api
  /** The address of the server as it is best typed again. */
  readonly server: string
  /** How this program was called, to be called again. */
  readonly program: string
  /** What goes behind a command in advice, so that it asks the same server: empty, or ` --url …`. */
  readonly urlOption: string
}

/** A command line that was understood: what is left is to do it. */
export interface Task {
  /** Sandbox that it is about, for advice. */
  readonly sandbox?: string
  readonly run: (context: CommandContext) => Promise<void>
}

export interface Command {
  readonly help: string
  /** Own options; those about the server are common to all. */
  readonly options: OptionTable
  /** Understands the words; throws `Wrong`. */
  readonly read: (words: ReadWords, env: CommandContext['env']) => Task
}

/** Words of any command, read by names that its own table has. */
export interface ReadWords {
  readonly positionals: readonly string[]
  readonly has: (name: string) => boolean
  readonly all: (name: string) => readonly string[]
  readonly one: (name: string) => string | undefined
}
