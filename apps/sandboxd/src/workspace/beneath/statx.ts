import { S_IFDIR, S_IFLNK, S_IFMT, S_IFREG } from './flags.ts'
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

/** What no other file on this machine has at the same time. */
export function identityOf(stat: Uint8Array): string {
  const view = viewOf(stat)
  const device = view.getBigUint64(DEV_AT, true).toString(36)
  return `${device}-${view.getBigUint64(INO_AT, true).toString(36)}`
}

function nanosecondsAt(view: DataView, at: number): bigint {
  return view.getBigInt64(at, true) * 1_000_000_000n + BigInt(view.getUint32(at + 8, true))
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

/**
 * Which file it is, how long, when its bytes and when anything about it changed. A program that sets the time of change back
 * cannot set the last one. Kernels before 6.13 count both in ticks of some milliseconds: two changes of one file in place
 * within one tick, of equal length, look like one.
 */
function etagOf(stat: Uint8Array): string {
  const view = viewOf(stat)
  const size = view.getBigUint64(SIZE_AT, true).toString(36)
  const times = [MTIME_AT, CTIME_AT].map((at) => nanosecondsAt(view, at).toString(36))
  return [identityOf(stat), size, ...times].join('-')
}

/** The part of a `struct statx` that this program tells others. */
export function readStat(stat: Uint8Array): FileStat {
  const view = viewOf(stat)
  const mode = modeOf(stat)
  return {
    kind: kindOf(mode),
    sizeBytes: Number(view.getBigUint64(SIZE_AT, true)),
    mode: mode & 0o7777,
    mtimeNs: nanosecondsAt(view, MTIME_AT).toString(),
    etag: etagOf(stat),
  }
}
