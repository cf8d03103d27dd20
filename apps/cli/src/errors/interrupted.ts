/** Whoever was asked pressed Ctrl-C, or another signal means that nobody waits any more. */
export class Interrupted extends Error {
  readonly signal: string

  constructor(signal = 'SIGINT') {
    super(signal)
    this.signal = signal
  }
}
