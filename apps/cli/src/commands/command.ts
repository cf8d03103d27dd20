import type { Api } from '../server/api.ts'
import type { ProgressTerminal } from '../copy/progress.ts'
import type { CredentialKind } from '../server/find-server.ts'
import type { FieldNames } from '../errors/field-names.ts'
import type { OptionTable } from '../options/parse-options.ts'

/** Streams and terminal of a command: data goes to stdout, messages to stderr. */
export interface CommandIo {
  readonly print: (data: string | Uint8Array) => void
  /** Width of the terminal that data goes to; undefined when it goes elsewhere. */
  readonly columns: number | undefined
  /** Prints a message to stderr, with the name of the program. */
  readonly info: (message: string) => void
  /** Prints a hint to stderr. */
  readonly hint: (hint: string) => void
  /** Asks a yes/no question; undefined without a terminal. Throws `InterruptedError`. */
  readonly confirm: ((question: string) => Promise<boolean>) | undefined
  /** Writes to stderr as is. */
  readonly write: (lines: string) => void
  /** Reads a line without echo; undefined without a terminal. Throws `InterruptedError`. */
  readonly promptSecret: ((question: string) => string | undefined) | undefined
  /** Reads all of stdin, up to a limit. */
  readonly readStdin: () => Promise<string>
  /** Opens a page in a browser, if there is a graphical session. */
  readonly openBrowser: (url: string) => void
  /** Attaches with these arguments; undefined when stdin is not a terminal. Returns the exit code. */
  readonly attach: ((argv: readonly string[]) => Promise<number>) | undefined
  /** The terminal on stderr, for progress; undefined without one. */
  readonly progress: ProgressTerminal | undefined
  /** Passes typed keys on until disposed; undefined without a terminal. Ctrl-C is a key then, not a signal. */
  readonly openKeyboard: ((onKeys: (keys: string) => void) => Disposable) | undefined
  /** Waits this long; throws when aborted. */
  readonly wait: (ms: number, signal?: AbortSignal) => Promise<void>
  /** The signal is aborted by SIGINT, SIGTERM or SIGHUP; its reason is the name. */
  readonly openInterruption: () => { readonly signal: AbortSignal } & Disposable
}

/** What a command runs with. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly io: CommandIo
  readonly nowMs: number
  /** Print the response of the API as JSON. */
  readonly isJson: boolean
  readonly api: Api
  /** The origin of the API. */
  readonly origin: string
  readonly credential: CredentialKind
  /** The address of the server, for commands to print. */
  readonly server: string
  /** How the user calls this program. */
  readonly program: string
  /** Makes a printed command use the same server: empty, or ` --url …`. */
  readonly urlOption: string
}

/** A parsed command, ready to run. */
export interface Task {
  /** The sandbox that it uses, for hints. */
  readonly sandbox?: string
  /** The run that it is about, for hints. */
  readonly runId?: string
  /** Command that lists valid arguments, for the hint when the argument is not found. */
  readonly hintCommand?: string
  /** Server address from the arguments of the command. */
  readonly url?: string
  /** Sends no stored credential. */
  readonly isAnonymous?: true
  /** Returns the exit code; 0 by default. */
  readonly run: (context: CommandContext) => Promise<number | void>
}

export interface Command {
  readonly help: string
  /** Options besides the common ones. */
  readonly options: OptionTable
  /** Options by request field, for errors of the server. */
  readonly fields?: FieldNames
  /** Parses the command line; throws `UsageError`. */
  readonly parse: (options: CommandOptions, env: CommandContext['env'], io: CommandIo) => Task | Promise<Task>
}

/** Parsed options of any command, read by names of its table. */
export interface CommandOptions {
  readonly positionals: readonly string[]
  readonly has: (name: string) => boolean
  readonly values: (name: string) => readonly string[]
  readonly value: (name: string) => string | undefined
}
