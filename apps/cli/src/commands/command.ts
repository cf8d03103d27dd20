import type { Api } from '../server/api.ts'
import type { ProgressCanvas } from '../copy/progress.ts'
import type { CredentialKind } from '../server/find-server.ts'
import type { FieldNames } from '../errors/field-names.ts'
import type { OptionTable } from '../options/words.ts'

/** Where a command speaks: data to stdout, talk to stderr. */
export interface CommandIo {
  readonly print: (data: string | Uint8Array) => void
  /** Width of the terminal that data goes to; undefined when it goes elsewhere. */
  readonly columns: number | undefined
  readonly say: (talk: string) => void
  /** What to do next. */
  readonly hint: (advice: string) => void
  /** Asks a question that is answered with yes or no; undefined where nobody can be asked. Throws `Interrupted`. */
  readonly confirm: ((question: string) => Promise<boolean>) | undefined
  /** Lines for the person at the terminal, as they are. */
  readonly show: (lines: string) => void
  /** Asks for something that must not be seen while it is typed; undefined where nobody can be asked. Throws `Interrupted`. */
  readonly promptSecret: ((question: string) => string | undefined) | undefined
  /** All of standard input, up to a bound. */
  readonly readStdin: () => Promise<string>
  /** Tries to open a page for whoever sits here; whether there is one to open it in is known there. */
  readonly openBrowser: (url: string) => void
  /** Goes on as an attach with these words; undefined when standard input is used up. Returns the exit code. */
  readonly attach: ((argv: readonly string[]) => Promise<number>) | undefined
  /** The terminal that progress is shown on; undefined where talk goes elsewhere. */
  readonly progress: ProgressCanvas | undefined
  /** Waits this long; throws when aborted. */
  readonly wait: (ms: number, signal?: AbortSignal) => Promise<void>
  /** Aborted by Ctrl-C and signals that end a program, with the name of the signal. */
  readonly openInterruption: () => { readonly signal: AbortSignal } & Disposable
}

/** What a command works with. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly io: CommandIo
  readonly nowMs: number
  /** Print the answer of the API as it is. */
  readonly isJson: boolean
  readonly api: Api
  /** The origin that the API is at. */
  readonly origin: string
  readonly credential: CredentialKind
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
  /** Command that lists what its words could have meant, for when there is no such thing. */
  readonly listCommand?: string
  /** Address of the server that it is for, where its own words say so. */
  readonly url?: string
  /** It shows no credential, or sees to that itself. */
  readonly isAnonymous?: true
  /** Returns the exit code where that is not 0. */
  readonly run: (context: CommandContext) => Promise<number | void>
}

export interface Command {
  readonly help: string
  /** Own options; those about the server are common to all. */
  readonly options: OptionTable
  /** What it calls the fields of its request, for refusals of the server. */
  readonly fields?: FieldNames
  /** Understands the words; throws `UsageError`. */
  readonly read: (words: CommandOptions, env: CommandContext['env'], io: CommandIo) => Task | Promise<Task>
}

/** ParsedOptions of any command, read by names that its own table has. */
export interface CommandOptions {
  readonly positionals: readonly string[]
  readonly has: (name: string) => boolean
  readonly all: (name: string) => readonly string[]
  readonly one: (name: string) => string | undefined
}
