import type { ByteName } from './names.ts'

/** Keeps the first names of a folder in the order of their bytes, and never many more than are wanted. */
export class Smallest {
  readonly #wanted: number
  #names: ByteName[] = []
  #hasDropped = false

  constructor(wanted: number) {
    this.#wanted = wanted
  }

  add(name: ByteName): void {
    this.#names.push(name)
    if (this.#names.length >= this.#wanted * 2 + 1024) this.#cut()
  }

  /** Those that are wanted, and whether there were more. */
  take(): { readonly names: readonly ByteName[]; readonly hasMore: boolean } {
    this.#cut()
    return { names: this.#names, hasMore: this.#hasDropped }
  }

  #cut(): void {
    this.#names.sort()
    if (this.#names.length <= this.#wanted) return
    this.#names.length = this.#wanted
    this.#hasDropped = true
  }
}
