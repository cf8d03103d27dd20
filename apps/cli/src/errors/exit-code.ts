import { writeSync } from 'node:fs'
import { type Exit, type SandwireError, signalNumber } from '@sandwire/protocol'
import { OutputError } from './errors.ts'

/** A failure of the connection or of this program, as ssh has it. */
export const EXIT_FAILURE = 255
/** The command line is wrong. */
export const EXIT_USAGE = 2
/** Left on purpose. */
export const EXIT_DETACHED = 0

/** What a shell reports for a process that this signal ended. */
export function exitCodeOfSignal(signal: string): number {
  return 128 + (signalNumber(signal) ?? 0)
}

/** Whether a status is that of a program which a signal ended. */
export function isSignalExit(code: number): boolean {
  return code > 128 && code < EXIT_FAILURE
}

/** The remote process's own status. */
export function exitCodeOf({ code, signal }: Pick<Exit, 'code' | 'signal'>): number {
  if (signal !== null) return exitCodeOfSignal(signal)
  return code ?? EXIT_FAILURE
}

/** The status for an attachment that failed. */
export function exitCodeOfError(error: SandwireError): number {
  return error.row.exit
}

/** Ends this program when standard output takes no more: without a word when whoever reads has seen enough. */
export function endOnWriteFault(): void {
  process.stdout.on('error', ({ code = 'EIO' }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') process.exit(exitCodeOfSignal('SIGPIPE'))
    const { message, hint } = new OutputError('stdout', code)
    try {
      writeSync(2, `sbx-stdio: ${message}\nhint: ${hint}\n`)
    } catch {
      // Nobody can be told.
    }
    process.exit(EXIT_FAILURE)
  })
}
