import { setTimeout as sleep } from 'node:timers/promises'
import { isCommandName } from '../src/commands/names.ts'
import { runCommand } from '../src/commands/run-command.ts'

/** Polling that takes seconds in a real process takes this long at most. */
const MAX_WAIT_MS = 10

/** What a command wrote, and its exit code. */
export interface CommandRun {
  readonly stdout: Buffer
  readonly stderr: string
  readonly code: number
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Standard input, which is not a terminal. */
  readonly input?: string
}

/** A command that is running in this process. */
export interface RunningCommand {
  readonly stderr: () => string
  /** Aborts the command as SIGINT would. */
  readonly interrupt: () => void
  readonly done: Promise<CommandRun>
}

/**
 * Starts one `sbx-stdio` command in this process, with captured output and no terminal. Attaching, and everything that
 * needs a descriptor, a signal or a terminal of its own, is tested with real processes in test/e2e.
 */
export function startCommand(
  argv: readonly string[],
  { env = {}, input = '' }: CommandOptions = {},
): RunningCommand {
  const [name, ...rest] = argv
  if (!isCommandName(name)) throw new Error(`Not a command: ${String(name)}`)
  const stdout: Uint8Array[] = []
  let stderr = ''
  const interruption = new AbortController()
  const done = runCommand(name, rest, {
    env: { SBX_TOKEN: undefined, ...env },
    nowMs: Date.now(),
    io: {
      print: (data) => void stdout.push(typeof data === 'string' ? Buffer.from(data) : data),
      columns: undefined,
      info: (text) => void (stderr += `sbx-stdio: ${text}\n`),
      hint: (text) => void (stderr += `hint: ${text}\n`),
      write: (lines) => void (stderr += lines),
      confirm: undefined,
      promptSecret: undefined,
      readStdin: () => Promise.resolve(input),
      openBrowser: () => undefined,
      attach: undefined,
      openKeyboard: undefined,
      progress: undefined,
      wait: (ms, signal) =>
        sleep(Math.min(ms, MAX_WAIT_MS), undefined, signal === undefined ? {} : { signal }),
      openInterruption: () => ({ signal: interruption.signal, [Symbol.dispose]: () => undefined }),
    },
  }).then((code) => ({ stdout: Buffer.concat(stdout), stderr, code }))
  return { stderr: () => stderr, interrupt: () => interruption.abort('SIGINT'), done }
}

/** Runs one `sbx-stdio` command in this process. */
export function runInProcess(argv: readonly string[], options?: CommandOptions): Promise<CommandRun> {
  return startCommand(argv, options).done
}
