import { S_IFDIR, S_IFLNK, S_IFMT, S_IFREG } from './constants.ts'
import type { FileKind, FileStat } from '../files.ts'

/** Size of the kernel's `struct statx`, and where its fields are. */
export const STATX_BYTES = 256
const NLINK_AT = 16
const MODE_AT = 28
const INO_AT = 32
const SIZE_AT = 40
const CTIME_AT = 96
const MTIME_AT = 112
const DEV_AT = 136

function viewOf(stat: Uint8Array): DataView {
  return new DataView(stat.buffer, stat.byteOffset, stat.byteLength)
}

/** Kind and permission bits in one number, as C has them. */
export function modeOf(stat: Uint8Array): number {
  return viewOf(stat).getUint16(MODE_AT, true)
}

/** How many names the file has; a folder that was removed has none. */
export function linksOf(stat: Uint8Array): number {
  return viewOf(stat).getUint32(NLINK_AT, true)
}

/** Eight bytes as a text, in parts: numbers of 64 bits are slow, and folders have many files. */
function textAt(view: DataView, at: number): string {
  const [low, high] = [view.getUint32(at, true), view.getUint32(at + 4, true)]
  return high === 0 ? low.toString(36) : `${high.toString(36)}.${low.toString(36)}`
}

/** What no other file on this machine has at the same time. */
export function identityOf(stat: Uint8Array): string {
  const view = viewOf(stat)
  return `${textAt(view, DEV_AT)}-${textAt(view, INO_AT)}`
}

/** Nanoseconds since the epoch, in decimal. */
function nanosecondsAt(view: DataView, at: number): string {
  const nanos = view.getUint32(at + 8, true)
  const isSimple = view.getInt32(at + 4, true) === 0
  const seconds = view.getUint32(at, true)
  if (isSimple && seconds > 0) return `${seconds}${String(nanos).padStart(9, '0')}`
  return (view.getBigInt64(at, true) * 1_000_000_000n + BigInt(nanos)).toString()
}

function kindOf(mode: number): FileKind {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return 'file'
    case S_IFDIR:
      return 'folder'
    case S_IFLNK:
      return 'link'
  }
  return 'special'
}

function timeAt(view: DataView, at: number): string {
  return `${textAt(view, at)}.${view.getUint32(at + 8, true).toString(36)}`
}

/**
 * Which file it is, how long, when its bytes and when anything about it changed. A program that sets the time of change back
 * cannot set the last one. Kernels before 6.13 count both in ticks of some milliseconds: two changes of one file in place
 * within one tick, of equal length, look like one.
 */
function etagOf(view: DataView): string {
  const file = `${textAt(view, DEV_AT)}-${textAt(view, INO_AT)}-${textAt(view, SIZE_AT)}`
  return `${file}-${timeAt(view, MTIME_AT)}-${timeAt(view, CTIME_AT)}`
}

/** The part of a `struct statx` that this program tells others. */
export function readStat(stat: Uint8Array): FileStat {
  const view = viewOf(stat)
  const mode = view.getUint16(MODE_AT, true)
  return {
    kind: kindOf(mode),
    sizeBytes: view.getUint32(SIZE_AT, true) + view.getUint32(SIZE_AT + 4, true) * 2 ** 32,
    mode: mode & 0o7777,
    mtimeNs: nanosecondsAt(view, MTIME_AT),
    etag: etagOf(view),
  }
}
