import { closeFd } from './calls.ts'

/** An open file or folder that is closed when it goes out of use, unless it was given away. */
export class Descriptor implements Disposable {
  #fd: number

  constructor(fd: number) {
    this.#fd = fd
  }

  get fd(): number {
    return this.#fd
  }

  /** Leaves it open, for the caller to close. */
  release(): number {
    const fd = this.#fd
    this.#fd = -1
    return fd
  }

  [Symbol.dispose](): void {
    if (this.#fd >= 0) closeFd(this.#fd)
    this.#fd = -1
  }
}
