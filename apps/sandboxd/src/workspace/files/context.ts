import { type FileAction, fileError, refusal } from '../beneath/file-error.ts'
import type { Root } from '../beneath/root.ts'
import { readStat } from '../beneath/statx.ts'
import { readFolder } from '../beneath/system-calls.ts'
import type { Condition } from '../files.ts'

/** What the functions of this folder need. */
export interface FileContext {
  readonly root: Root
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly umask: number
}

/**
 * A file operation that may take long. It pauses at every `yield` so that others can run; a yielded value is a part of the
 * result. Ending it early closes what it has open.
 */
export type Job<Result, Part = never> = Generator<Part | undefined, Result, void>

/** Throws `file_changed` unless the precondition holds. `stat` is undefined when nothing exists. */
export function checkCondition(
  { ifMatch, ifAbsent }: Condition,
  stat: Uint8Array | undefined,
  subject: { readonly action: FileAction; readonly path: string },
): void {
  const changed = (why: string): Error => refusal('file_changed', subject.action, subject.path, why)
  if (ifAbsent === true && stat !== undefined) throw changed('it already exists')
  if (ifMatch === undefined) return
  if (stat === undefined) throw changed('it is gone')
  const { etag } = readStat(stat)
  if (!ifMatch.includes('*') && !ifMatch.includes(etag)) throw changed('it has changed')
}

/** Prefix of temporary names. */
const PREFIX = '.sandwire-'
const SUFFIX = '.part'

/** Returns a unique temporary name, NUL-terminated. */
export function hiddenName(): Uint8Array {
  const random = crypto.getRandomValues(new Uint8Array(12)).toHex()
  return Buffer.from(`${PREFIX}${random}${SUFFIX}\0`)
}

/** True for temporary names. */
export function isHiddenName(name: string): boolean {
  return name.startsWith(PREFIX) && name.endsWith(SUFFIX)
}

/** Field offsets of `struct linux_dirent64`. */
const LENGTH_AT = 16
const NAME_AT = 19
/** As much as the C library reads per call. */
const BUFFER_BYTES = 32 * 1024

/** A name with one character per byte, so that string comparison compares bytes. */
export type ByteName = string

export function byteName(bytes: Uint8Array): ByteName {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}

export function bytesOfName(name: ByteName): Uint8Array {
  return Buffer.from(name, 'latin1')
}

/** NUL-terminated, for system calls. */
export function cName(name: ByteName): Uint8Array {
  return Buffer.from(`${name}\0`, 'latin1')
}

function nameAt(buffer: Buffer, start: number): ByteName {
  return buffer.toString('latin1', start, buffer.indexOf(0, start))
}

/** Calls `visit` for each name in an open folder, unsorted, without `.` and `..`; stops when it returns false. */
export function* eachName(
  folder: number,
  visit: (name: ByteName) => boolean,
  subject: { readonly action: FileAction; readonly path: string },
): Job<void> {
  const buffer = Buffer.alloc(BUFFER_BYTES)
  for (;;) {
    const size = readFolder(folder, buffer)
    if (size < 0) throw fileError(subject.action, subject.path, size)
    if (size === 0) return
    for (let at = 0; at < size; at += buffer.readUInt16LE(at + LENGTH_AT)) {
      const name = nameAt(buffer, at + NAME_AT)
      if (name !== '.' && name !== '..' && !visit(name)) return
    }
    yield undefined
  }
}

/** All names in an open folder, sorted by bytes. */
export function* sortedNames(
  folder: number,
  subject: { readonly action: FileAction; readonly path: string },
): Job<ByteName[]> {
  const names: ByteName[] = []
  yield* eachName(folder, (name) => names.push(name) > 0, subject)
  return names.sort()
}
