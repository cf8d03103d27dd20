import type { ProcessSpec, RunningProcess, StartProcess } from '../processes/process.ts'
import { type ControlMessage, ControlParser, ControlStreamError } from './control-parser.ts'

/** tmux refused a command; the message is tmux's own. */
export class TmuxCommandError extends Error {}

/** The client ended before the reply. */
export class TmuxGoneError extends Error {
  constructor() {
    super('tmux has ended')
  }
}

export interface ControlEvents {
  /** Output and notices, in the order in which tmux sent them. */
  message(message: Exclude<ControlMessage, { kind: 'reply' }>): void
  /** The client ended; called once. `reason` is what it printed, empty when it was killed. */
  ended(reason: string): void
}

/** A line of commands that waits for its replies. tmux runs them without anything in between. */
interface Pending {
  /** What the last command of the line prints. Replies cannot be counted: a command within `if-shell` has one of its own. */
  readonly mark: string
  readonly replies: (readonly Uint8Array[])[]
  readonly resolve: (replies: Replies) => void
  readonly reject: (error: Error) => void
}

/** The lines that each command of a line printed. */
export type Replies = readonly (readonly Uint8Array[])[]

/** What tmux prints when it cannot start is short. */
const MAX_ERROR_CHARS = 500

/** Runs `tmux -C` on pipes: sends commands and passes on what happens. */
export class ControlClient {
  readonly #process: RunningProcess
  readonly #parser = new ControlParser()
  readonly #events: ControlEvents
  readonly #pending: Pending[] = []
  #reason = ''
  #hasEnded = false
  #lines = 0

  private constructor(start: (events: Parameters<StartProcess>[1]) => RunningProcess, events: ControlEvents) {
    this.#events = events
    this.#process = start({
      output: (stream, chunk) => (stream === 'stdout' ? this.#take(chunk) : this.#note(chunk)),
      inputSettled: () => undefined,
      inputRefused: () => undefined,
      inputClosed: () => undefined,
      resized: () => undefined,
      ended: () => this.#end(),
    })
  }

  /** Undefined when tmux is not installed. */
  static open(
    startProcess: StartProcess,
    spec: ProcessSpec,
    events: ControlEvents,
  ): ControlClient | undefined {
    let hasFailed = false
    try {
      return new ControlClient((processEvents) => {
        const started = startProcess(spec, processEvents)
        if (!('failure' in started)) return started
        hasFailed = started.failure === 'not_found'
        throw new TmuxCommandError(started.message)
      }, events)
    } catch (error) {
      if (hasFailed) return undefined
      throw error
    }
  }

  /** Runs commands at one moment; resolves to the lines that each printed. */
  async run(...commands: readonly string[]): Promise<Replies> {
    return new Promise((resolve, reject) => this.runThen(commands, resolve, reject))
  }

  /** As `run`, but calls back before any message after the reply is passed on. */
  runThen(
    commands: readonly string[],
    resolve: (replies: Replies) => void,
    reject: (error: Error) => void,
  ): void {
    if (this.#hasEnded) {
      reject(new TmuxGoneError())
      return
    }
    this.#lines += 1
    const mark = `end-of-line-${this.#lines}`
    this.#pending.push({ mark, replies: [], resolve, reject })
    const line = [...commands, `display-message -p ${mark}`].join(' ; ')
    this.#process.write(new TextEncoder().encode(`${line}\n`))
  }

  close(): void {
    void this.#process.terminate()
  }

  #take(chunk: Uint8Array): void {
    try {
      for (const message of this.#parser.push(chunk)) {
        if (message.kind === 'reply') this.#reply(message)
        else {
          if (message.kind === 'exit') this.#reason = message.reason
          this.#events.message(message)
        }
      }
    } catch (error) {
      if (!(error instanceof ControlStreamError)) throw error
      this.#reason = error.message
      this.close()
    }
  }

  #note(chunk: Uint8Array): void {
    this.#reason = (this.#reason + new TextDecoder().decode(chunk)).slice(0, MAX_ERROR_CHARS)
  }

  #reply({ isError, lines }: Extract<ControlMessage, { kind: 'reply' }>): void {
    const [pending] = this.#pending
    if (pending === undefined) return
    if (isError) {
      // tmux does not run the commands after one that failed.
      this.#pending.shift()
      pending.reject(new TmuxCommandError(lines.map((line) => new TextDecoder().decode(line)).join(' ')))
      return
    }
    const [first] = lines
    if (lines.length !== 1 || first === undefined || new TextDecoder().decode(first) !== pending.mark) {
      pending.replies.push(lines)
      return
    }
    this.#pending.shift()
    pending.resolve(pending.replies)
  }

  #end(): void {
    this.#hasEnded = true
    for (const { reject } of this.#pending.splice(0)) reject(new TmuxGoneError())
    this.#events.ended(this.#reason.trim())
  }
}

/** Quotes a text that tmux expands as a format, so that it stays as it is: `#(…)` would run a program. */
export function quoteFormat(text: string): string {
  return `'${escapeFormat(text).replaceAll("'", String.raw`'\''`)}'`
}

/** Escapes a text that tmux expands as a format. tmux leaves `#[`, which is a style, as it is. */
function escapeFormat(text: string): string {
  return text.replaceAll(/#+(?!#|\[)/g, (signs) => signs + signs)
}

/** A text that tmux expands as a format, as an argument of its program, where a last `;` would end the command. */
export function formatArgument(text: string): string {
  return escapeFormat(text).replace(/;$/, String.raw`\;`)
}
