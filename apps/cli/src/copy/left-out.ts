import { printable } from '../printable.ts'

/** Lines about what was left out; more would hide everything else. */
const MAX_LINES = 10

/** What was not copied, and why. */
export class LeftOut {
  readonly #lines: string[] = []
  #count = 0

  add(path: string, why: string): void {
    this.#count += 1
    if (this.#lines.length < MAX_LINES) this.#lines.push(`left out "${printable(path)}": ${printable(why)}`)
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
