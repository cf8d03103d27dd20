import { type ErrorCode, SandwireError } from '@sandwire/protocol'

/** The command line is wrong. Without a hint of its own, the hint is the command's `--help`. */
export class UsageError extends Error {
  readonly hint: string | undefined

  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}

/** An error that brings its own hint. */
export class HintedError extends SandwireError {
  readonly hint: string

  constructor(code: ErrorCode, message: string, hint: string) {
    super(code, message)
    this.hint = hint
  }
}

/** The stored sign-in or guest access has ended. */
export class SignedOutError extends SandwireError {
  constructor(reason: string) {
    super('unauthorized', `Signed out: ${reason}`)
  }
}

/** Writing to stdout, a device or a pipe failed with this errno. */
export class OutputError extends HintedError {
  constructor(target: string, errno: string) {
    super('file_refused', `Cannot write to ${target}: ${errno}`, 'check where the output goes')
  }
}

/** The user pressed Ctrl-C at a prompt, or a signal ended the command. */
export class InterruptedError extends Error {
  readonly signal: string

  constructor(signal = 'SIGINT') {
    super(signal)
    this.signal = signal
  }
}
