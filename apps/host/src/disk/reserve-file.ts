import { closeSync, fstatSync, ftruncateSync, openSync } from 'node:fs'
import { openLibc } from '../libc.ts'

let libc: ReturnType<typeof bindLibc> | undefined

function bindLibc() {
  return openLibc({ fallocate: { args: ['i32', 'i32', 'i64', 'i64'], returns: 'i32' } })
}

/** A file whose blocks are held back from every other program, and given back by making it shorter. */
export class ReserveFile {
  readonly #fd: number

  constructor(file: string) {
    this.#fd = openSync(file, 'a', 0o600)
  }

  /** Bytes that it holds. A file system may allocate less than was asked for, or copies of a data folder nothing. */
  get bytes(): number {
    const { blocks, size } = fstatSync(this.#fd)
    return Math.min(size, blocks * 512)
  }

  /** Makes it this long; returns what it holds then. It stays as it is when the disk has not enough space. */
  resize(bytes: number): number {
    const { size } = fstatSync(this.#fd)
    if (bytes < size) ftruncateSync(this.#fd, bytes)
    libc ??= bindLibc()
    // A failed call may leave a longer file without blocks.
    if (bytes > 0 && libc.fallocate(this.#fd, 0, 0, bytes) !== 0)
      ftruncateSync(this.#fd, Math.min(size, bytes))
    return this.bytes
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd)
  }
}
