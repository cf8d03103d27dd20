import { printable } from '../text/printable.ts'

/** Lines about what was left out; more would hide everything else. */
const MAX_LINES = 10

/** What was not copied, or not for sure, and why. */
export class LeftOut {
  readonly #lines: string[] = []
  #count = 0

  add(path: string, why: string): void {
    this.#tell(`left out "${printable(path)}": ${printable(why)}`)
  }

  /** It is there, and may be a mixture of two states. */
  addDoubtful(path: string): void {
    this.#tell(`"${printable(path)}" changed while it was copied, so look at it again`)
  }

  #tell(line: string): void {
    this.#count += 1
    if (this.#lines.length < MAX_LINES) this.#lines.push(line)
  }

  /** So many further ones, of which nothing is known. */
  addMore(count: number): void {
    this.#count += count
  }

  get count(): number {
    return this.#count
  }

  get lines(): readonly string[] {
    const more = this.#count - this.#lines.length
    return more === 0 ? this.#lines : [...this.#lines, `and ${more} more`]
  }
}
