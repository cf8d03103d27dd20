import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/** The last bytes of a file; empty when there is none. */
function readEnd(file: string, maxBytes: number): Buffer {
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch {
    // Nothing was logged yet, or the log was not full before.
    return Buffer.alloc(0)
  }
  try {
    const { size } = fstatSync(fd)
    const bytes = Buffer.alloc(Math.min(size, maxBytes))
    return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, size - bytes.length))
  } finally {
    closeSync(fd)
  }
}

/** The last whole lines of a log and the one before it, at most so many bytes of them. */
export function readTail(file: string, maxBytes: number): string {
  // One byte more tells whether the first line is whole.
  const wanted = maxBytes + 1
  const newer = readEnd(file, wanted)
  const older = newer.length < wanted ? readEnd(`${file}.1`, wanted - newer.length) : Buffer.alloc(0)
  const bytes = Buffer.concat([older, newer])
  if (bytes.length <= maxBytes) return bytes.toString('utf8')
  return bytes.subarray(bytes.indexOf('\n') + 1).toString('utf8')
}
