import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'

/** A log and the one before it together take at most twice this. */
const MAX_LOG_BYTES = 8 * 1024 * 1024

/** A file of lines that stays bounded: when full it becomes `FILE.1`, replacing the one before. */
export class LogFile {
  readonly #file: string
  readonly #maxBytes: number
  #fd: number
  #bytes: number

  constructor(file: string, maxBytes: number = MAX_LOG_BYTES) {
    this.#file = file
    this.#maxBytes = maxBytes
    this.#fd = openSync(file, 'a', 0o600)
    this.#bytes = fstatSync(this.#fd).size
  }

  write(line: string): void {
    const bytes = Buffer.from(line)
    if (this.#bytes + bytes.length > this.#maxBytes) this.#rotate()
    this.#bytes += writeSync(this.#fd, bytes)
  }

  #rotate(): void {
    closeSync(this.#fd)
    renameSync(this.#file, `${this.#file}.1`)
    this.#fd = openSync(this.#file, 'a', 0o600)
    this.#bytes = 0
  }
}
