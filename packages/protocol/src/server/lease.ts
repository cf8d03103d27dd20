/** Who drives. At most one attachment at a time; every change of hands is a new epoch. */
export class Lease {
  #holder: string | null = null
  #epoch = 0
  /** While the holder is cut off, its lease is kept until this time. */
  #reservedUntilMs: number | null = null

  /** Attachment that drives, or whose return is awaited. */
  get holder(): string | null {
    return this.#holder
  }

  get epoch(): number {
    return this.#epoch
  }

  get reservedUntilMs(): number | null {
    return this.#reservedUntilMs
  }

  /** True when nobody drives and nobody's return is awaited any more. */
  isClaimable(nowMs: number): boolean {
    return this.#holder === null || (this.#reservedUntilMs !== null && nowMs >= this.#reservedUntilMs)
  }

  grant(holder: string): void {
    this.#holder = holder
    this.#reservedUntilMs = null
    this.#epoch += 1
  }

  /** The holder's connection broke. */
  reserve(untilMs: number): void {
    this.#reservedUntilMs = untilMs
  }

  /** The holder is back. */
  confirm(): void {
    this.#reservedUntilMs = null
  }

  free(): void {
    if (this.#holder === null) return
    this.#holder = null
    this.#reservedUntilMs = null
    this.#epoch += 1
  }
}
