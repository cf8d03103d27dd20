import { FFIType, ptr } from 'bun:ffi'
import { openLibc, orErrno } from '../processes/linux/open-libc.ts'
import { AT_SYMLINK_NOFOLLOW, EINTR, ENXIO } from '../workspace/beneath/constants.ts'

/** System calls that only saving and restoring need. All return a value ≥ 0 or a negative errno. */

const I64 = FFIType.i64_fast
const libc = openLibc({
  fgetxattr: { args: ['i32', 'ptr', 'ptr', I64], returns: I64 },
  futimens: { args: ['i32', I64], returns: 'i32' },
  flistxattr: { args: ['i32', 'ptr', I64], returns: I64 },
  fsetxattr: { args: ['i32', 'ptr', 'ptr', I64, 'i32'], returns: 'i32' },
  lseek: { args: ['i32', I64, 'i32'], returns: I64 },
  mkfifoat: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  fchmodat: { args: ['i32', 'ptr', 'u32', 'i32'], returns: 'i32' },
  pwrite: { args: ['i32', 'ptr', I64, I64], returns: I64 },
  statx: { args: ['i32', I64, 'i32', 'u32', I64], returns: 'i32' },
  syncfs: { args: ['i32'], returns: 'i32' },
})

/** `STATX_BASIC_STATS`. */
const MASK = 0x7ff

/** A buffer whose address stays valid: Bun moves small typed arrays when their `buffer` is first read. */
export class FixedBuffer {
  readonly bytes: Buffer
  readonly view: DataView
  /** Address of the first byte. */
  readonly address: number

  constructor(sizeBytes: number) {
    const memory = new ArrayBuffer(sizeBytes)
    this.bytes = Buffer.from(memory)
    this.view = new DataView(memory)
    this.address = Number(ptr(new Uint8Array(memory)))
  }
}

/** `statx` of the NUL-terminated name at an address, without following a link. */
export function statName(folder: number, nameAddress: number, into: FixedBuffer): number {
  return orErrno(libc.statx(folder, nameAddress, AT_SYMLINK_NOFOLLOW, MASK, into.address))
}

/** Starts reading a folder again from its first entry. */
export function rewindFolder(fd: number): number {
  return orErrno(libc.lseek(fd, 0, 0))
}

export function seekTo(fd: number, position: number): number {
  return orErrno(libc.lseek(fd, position, 0))
}

const SEEK_DATA = 3

/** Position of the next byte that is not in a hole, or the end. A file system that does not know answers `from`. */
export function nextData(fd: number, from: number, end: number): number {
  const position = orErrno(libc.lseek(fd, from, SEEK_DATA))
  const next = position >= 0 ? position : position === -ENXIO ? end : from
  seekTo(fd, from)
  return Math.min(next, Math.max(from, end))
}

/** Writes all changed pages of a file system to its disk. */
export function syncFileSystem(fd: number): number {
  return orErrno(libc.syncfs(fd))
}

const NAMES_BYTES = 64 * 1024
const names = new FixedBuffer(NAMES_BYTES)
const value = new FixedBuffer(64 * 1024)

const USER_PREFIX = 'user.'

/** The extended attributes in the namespace `user` of an open file; none where the file system has none. */
export function readXattrs(fd: number): readonly { readonly name: Uint8Array; readonly value: Uint8Array }[] {
  const size = orErrno(libc.flistxattr(fd, names.bytes, NAMES_BYTES))
  if (size <= 0) return []
  const found = []
  for (const name of names.bytes.toString('latin1', 0, size).split('\0')) {
    if (!name.startsWith(USER_PREFIX)) continue
    const length = orErrno(
      libc.fgetxattr(fd, Buffer.from(`${name}\0`, 'latin1'), value.bytes, value.bytes.byteLength),
    )
    if (length >= 0)
      found.push({
        name: new Uint8Array(Buffer.from(name, 'latin1')),
        value: new Uint8Array(value.bytes.subarray(0, length)),
      })
  }
  return found
}

export function setXattr(fd: number, name: Uint8Array, content: Uint8Array): number {
  const terminated = Buffer.concat([name, Uint8Array.of(0)])
  // A pointer to no bytes is not accepted.
  const bytes = content.byteLength === 0 ? Uint8Array.of(0) : content
  return orErrno(libc.fsetxattr(fd, terminated, bytes, content.byteLength, 0))
}

const UTIME_OMIT = 0x3ffffffe
/** Two `struct timespec`. */
const times = new FixedBuffer(32)
times.view.setUint32(8, UTIME_OMIT, true)

/** Sets the modification time of an open file: whole seconds, which may be negative, and the nanoseconds to add. */
export function setModified(fd: number, seconds: number, nanos: number): number {
  times.view.setUint32(16, seconds % 2 ** 32, true)
  times.view.setInt32(20, Math.floor(seconds / 2 ** 32), true)
  times.view.setUint32(24, nanos, true)
  return orErrno(libc.futimens(fd, times.address))
}

export function makeFifoAt(folder: number, name: Uint8Array, mode: number): number {
  return orErrno(libc.mkfifoat(folder, name, mode))
}

/** Changes the mode of a name; must not be a symlink. */
export function chmodAt(folder: number, name: Uint8Array, mode: number): number {
  return orErrno(libc.fchmodat(folder, name, mode, 0))
}

export function writeAt(fd: number, bytes: Uint8Array, position: number): number {
  for (;;) {
    const result = orErrno(libc.pwrite(fd, bytes, bytes.byteLength, position))
    if (result !== -EINTR) return result
  }
}
