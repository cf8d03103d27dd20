/** Maximum size of a write; longer input is split. */
const INPUT_BYTES = 32 * 1024

interface InputEvents {
  /** Resolves when the bytes are accepted for delivery. */
  readonly write: (bytes: Uint8Array) => Promise<void>
  /** This many bytes will not be delivered. */
  readonly onLost: (bytes: number) => void
}

/** Sends input to one attachment in order. Rejected input is lost alone; what follows is sent. */
export class InputQueue {
  readonly #events: InputEvents
  /** Rejects when `onLost` throws. */
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
      // A text with a missing part must not be sent, so its rest is dropped too.
      this.#events.onLost(bytes.byteLength - from)
    }
  }
}
