import { readFolder } from '../beneath/calls.ts'
import { type Doing, fileError } from '../beneath/file-error.ts'
import type { Job } from './job.ts'

/** Where the fields of `struct linux_dirent64` are. */
const LENGTH_AT = 16
const NAME_AT = 19
/** One call's worth; as much as the C library asks for. */
const BUFFER_BYTES = 32 * 1024

/** A name with one character per byte, so that comparing texts compares bytes. */
export type ByteName = string

export function byteName(bytes: Uint8Array): ByteName {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}

export function bytesOfName(name: ByteName): Uint8Array {
  return Buffer.from(name, 'latin1')
}

/** With a zero at the end, as system calls take it. */
export function cName(name: ByteName): Uint8Array {
  return Buffer.from(`${name}\0`, 'latin1')
}

function nameAt(buffer: Buffer, start: number): ByteName {
  return buffer.toString('latin1', start, buffer.indexOf(0, start))
}

/** Tells the names in an open folder, in no order, without `.` and `..`; stops when `visit` returns false. */
export function* eachName(
  folder: number,
  visit: (name: ByteName) => boolean,
  told: { readonly doing: Doing; readonly path: string },
): Job<void> {
  const buffer = Buffer.alloc(BUFFER_BYTES)
  for (;;) {
    const size = readFolder(folder, buffer)
    if (size < 0) throw fileError(told.doing, told.path, size)
    if (size === 0) return
    for (let at = 0; at < size; at += buffer.readUInt16LE(at + LENGTH_AT)) {
      const name = nameAt(buffer, at + NAME_AT)
      if (name !== '.' && name !== '..' && !visit(name)) return
    }
    yield undefined
  }
}

/** All names in an open folder, in the order of their bytes. */
export function* sortedNames(
  folder: number,
  told: { readonly doing: Doing; readonly path: string },
): Job<ByteName[]> {
  const names: ByteName[] = []
  yield* eachName(folder, (name) => names.push(name) > 0, told)
  return names.sort()
}
