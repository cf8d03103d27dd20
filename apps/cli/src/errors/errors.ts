import { type ErrorCode, SandwireError } from '@sandwire/protocol'

/** An error that itself knows what to do about it. */
export class HintedError extends SandwireError {
  readonly hint: string

  constructor(code: ErrorCode, message: string, hint: string) {
    super(code, message)
    this.hint = hint
  }
}

/** Whoever was asked pressed Ctrl-C, or another signal means that nobody waits any more. */
export class Interrupted extends Error {
  readonly signal: string

  constructor(signal = 'SIGINT') {
    super(signal)
    this.signal = signal
  }
}

/** Something takes no more bytes, for this errno. */
export class OutputError extends HintedError {
  constructor(where: string, errno: string) {
    super('file_refused', `Cannot write to ${where}: ${errno}`, 'check where the output goes')
  }
}
