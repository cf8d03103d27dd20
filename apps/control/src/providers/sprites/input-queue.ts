export type ExecInput =
  | { readonly do: 'write'; readonly bytes: Uint8Array }
  | { readonly do: 'resize'; readonly cols: number; readonly rows: number }

export interface QueueLimits {
  readonly maxBytes: number
  readonly maxMessages: number
}

/** Input of a client that waits for the sprite. Of several resizes only the last one waits; the queue refuses what does not fit. */
export class InputQueue {
  readonly #limits: QueueLimits
  #inputs: ExecInput[] = []
  #bytes = 0

  constructor(limits: QueueLimits) {
    this.#limits = limits
  }

  /** False: it does not fit, and was not queued. */
  push(input: ExecInput): boolean {
    if (input.do === 'resize') this.#inputs = this.#inputs.filter((waiting) => waiting.do === 'write')
    const bytes = input.do === 'write' ? input.bytes.length : 0
    const { maxBytes, maxMessages } = this.#limits
    if (this.#inputs.length >= maxMessages || this.#bytes + bytes > maxBytes) return false
    this.#inputs.push(input)
    this.#bytes += bytes
    return true
  }

  /** Removes and returns the first inputs of one kind. */
  take(): readonly ExecInput[] {
    const [first] = this.#inputs
    const end = this.#inputs.findIndex((input) => input.do !== first?.do)
    const taken = this.#inputs.splice(0, end < 0 ? this.#inputs.length : end)
    for (const input of taken) if (input.do === 'write') this.#bytes -= input.bytes.length
    return taken
  }

  get isEmpty(): boolean {
    return this.#inputs.length === 0
  }
}
