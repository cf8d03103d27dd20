import { type Exit, type SandwireError, signalNumber } from '@sandwire/protocol'

/** The connection or this program failed; the same code as ssh. */
export const EXIT_FAILURE = 255
/** The command line is wrong. */
export const EXIT_USAGE = 2
/** The user detached with the escape key. */
export const EXIT_DETACHED = 0

/** What a shell reports for a process that this signal ended. */
export function exitCodeOfSignal(signal: string): number {
  return 128 + (signalNumber(signal) ?? 0)
}

export function isSignalExit(code: number): boolean {
  return code > 128 && code < EXIT_FAILURE
}

/** The exit code of the remote process. */
export function exitCodeOf({ code, signal }: Pick<Exit, 'code' | 'signal'>): number {
  if (signal !== null) return exitCodeOfSignal(signal)
  return code ?? EXIT_FAILURE
}

/** The exit code for a failed attachment or command. */
export function exitCodeOfError(error: SandwireError): number {
  return error.info.exit
}
