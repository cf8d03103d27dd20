/** Largest piece of input that is sent at once; longer ones go in several. */
const INPUT_BYTES = 32 * 1024

interface InputEvents {
  /** Resolves when the bytes are accepted for delivery. */
  readonly write: (bytes: Uint8Array) => Promise<void>
  /** So many bytes will not be delivered. */
  readonly onLost: (bytes: number) => void
}

/** Sends input to one attachment in order, in pieces. What is refused is lost alone: what comes after it is sent. */
export class InputQueue {
  readonly #events: InputEvents
  /** Rejects where somebody threw when told of a loss, which is theirs to mend. */
  #last: Promise<void> = Promise.resolve()

  constructor(events: InputEvents) {
    this.#events = events
  }

  send(bytes: Uint8Array): void {
    const write = (): Promise<void> => this.#write(bytes)
    this.#last = this.#last.then(write, write)
  }

  async #write(bytes: Uint8Array): Promise<void> {
    let from = 0
    try {
      for (; from < bytes.byteLength; from += INPUT_BYTES)
        await this.#events.write(bytes.subarray(from, from + INPUT_BYTES))
    } catch {
      // A text without its middle is another text, so the rest of it goes as well.
      this.#events.onLost(bytes.byteLength - from)
    }
  }
}
