import { readSync } from 'node:fs'

const CHUNK_BYTES = 256 * 1024

/**
 * Reads an open file in pieces, with pauses for other work. Files are opened and read in this thread: those of Bun's pool may act
 * as the user, because a thread inherits the file permissions that its creator has at the moment.
 */
export async function* readChunks(fd: number): AsyncGenerator<Buffer> {
  for (;;) {
    const buffer = Buffer.alloc(CHUNK_BYTES)
    const count = readSync(fd, buffer)
    if (count <= 0) return
    yield buffer.subarray(0, count)
    await new Promise((resolve) => setImmediate(resolve))
  }
}
