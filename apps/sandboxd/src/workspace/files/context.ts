import { type Doing, fileError, refusal } from '../beneath/file-error.ts'
import type { Root } from '../beneath/root.ts'
import { readStat } from '../beneath/statx.ts'
import { readFolder } from '../beneath/system-calls.ts'
import type { Condition } from '../files.ts'

/** What the verbs of this folder work with. */
export interface Ground {
  readonly root: Root
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Permission bits that new files do not get. */
  readonly umask: number
}

/**
 * Work on files that may take long: it stops at every `yield`, so that others get their turn, and goes on when it is asked to.
 * What it yields, if anything, is a part of its result. Ending it early closes what it has open.
 */
export type Job<Result, Part = never> = Generator<Part | undefined, Result, void>

/** Throws `file_changed` unless what is there, undefined for nothing, is what the change was meant for. */
export function checkCondition(
  { ifMatch, ifAbsent }: Condition,
  stat: Uint8Array | undefined,
  told: { readonly doing: Doing; readonly path: string },
): void {
  const changed = (why: string): Error => refusal('file_changed', told.doing, told.path, why)
  if (ifAbsent === true && stat !== undefined) throw changed('something is there already')
  if (ifMatch === undefined) return
  if (stat === undefined) throw changed('it is gone')
  const { etag } = readStat(stat)
  if (!ifMatch.includes('*') && !ifMatch.includes(etag)) throw changed('it was changed meanwhile')
}

/** What names of things that are not finished begin with. */
const PREFIX = '.sandwire-'
const SUFFIX = '.part'

/** A name beside a file that nobody else uses, with a zero at the end. */
export function hiddenName(): Uint8Array {
  const random = crypto.getRandomValues(new Uint8Array(12)).toHex()
  return Buffer.from(`${PREFIX}${random}${SUFFIX}\0`)
}

/** Whether a name is of something that is not finished. */
export function isHiddenName(name: string): boolean {
  return name.startsWith(PREFIX) && name.endsWith(SUFFIX)
}

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
