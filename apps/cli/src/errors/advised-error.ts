import { type ErrorCode, SandwireError } from '@sandwire/protocol'

/** An error that itself knows what to do about it. */
export class AdvisedError extends SandwireError {
  readonly hint: string

  constructor(code: ErrorCode, message: string, hint: string) {
    super(code, message)
    this.hint = hint
  }
}
