import { S_IFDIR, S_IFLNK, S_IFMT, S_IFREG } from './constants.ts'
import type { FileKind, FileStat } from '../files.ts'

/** Size and field offsets of `struct statx`. */
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

/** `st_mode`: file type and permissions. */
export function modeOf(stat: Uint8Array): number {
  return viewOf(stat).getUint16(MODE_AT, true)
}

/** Number of hard links; 0 for a removed folder. */
export function linksOf(stat: Uint8Array): number {
  return viewOf(stat).getUint32(NLINK_AT, true)
}

/** Formats a 64-bit number in two halves: BigInt is slow, and folders have many files. */
function textAt(view: DataView, at: number): string {
  const [low, high] = [view.getUint32(at, true), view.getUint32(at + 4, true)]
  return high === 0 ? low.toString(36) : `${high.toString(36)}.${low.toString(36)}`
}

/** Device and inode, unique on this machine at a given time. */
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
 * Built from device, inode, size, mtime and ctime. A program can set mtime back, but not ctime. Kernels before 6.13 count both
 * in ticks of a few milliseconds: two in-place changes of equal length within one tick give the same etag.
 */
function etagOf(view: DataView): string {
  const file = `${textAt(view, DEV_AT)}-${textAt(view, INO_AT)}-${textAt(view, SIZE_AT)}`
  return `${file}-${timeAt(view, MTIME_AT)}-${timeAt(view, CTIME_AT)}`
}

/** The fields of `struct statx` that the API reports. */
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
