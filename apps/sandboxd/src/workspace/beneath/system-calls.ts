import { FFIType, ptr } from 'bun:ffi'
import { openLibc, orErrno } from '../../processes/linux/open-libc.ts'
import { AT_EMPTY_PATH, EINTR, O_CLOEXEC, RENAME_EXCHANGE, RENAME_NOREPLACE } from './constants.ts'

/** Descriptors below this number are tracked; a process rarely has more. */
const TRACKED = 65_536

/**
 * The open descriptors of a thread, in shared memory: if the thread ends without closing them, another thread does. A descriptor
 * that is handed over is removed by its new owner.
 */
export class OpenTable {
  readonly shared: SharedArrayBuffer
  readonly #open: Uint8Array

  constructor(shared = new SharedArrayBuffer(TRACKED)) {
    this.shared = shared
    this.#open = new Uint8Array(shared)
  }

  add(fd: number): void {
    if (fd < TRACKED) Atomics.store(this.#open, fd, 1)
  }

  remove(fd: number): void {
    if (fd < TRACKED) Atomics.store(this.#open, fd, 0)
  }

  /** Returns and removes all open descriptors. */
  take(): number[] {
    const fds: number[] = []
    for (const [fd, isOpen] of this.#open.entries()) if (isOpen === 1) fds.push(fd)
    this.#open.fill(0)
    return fds
  }
}

/** For threads whose descriptors need no tracking. */
function untracked(): OpenTable {
  return new OpenTable()
}

/**
 * System calls on files, all relative to an open folder. Every function returns a value ≥ 0 or a negative errno; none throws.
 * Names are NUL-terminated, as `cString` returns them.
 */

/** Numbers of system calls that older C libraries do not wrap. */
const NR =
  process.arch === 'arm64'
    ? { getdents64: 61, renameat2: 276, statx: 291, copyFileRange: 285, setgroups: 159, getgroups: 158 }
    : { getdents64: 217, renameat2: 316, statx: 332, copyFileRange: 326, setgroups: 116, getgroups: 115 }
const NR_OPENAT2 = 437

const I64 = FFIType.i64_fast
const libc = openLibc({
  close: { args: ['i32'], returns: 'i32' },
  fchmod: { args: ['i32', 'u32'], returns: 'i32' },
  ftruncate: { args: ['i32', I64], returns: 'i32' },
  futimens: { args: ['i32', 'ptr'], returns: 'i32' },
  linkat: { args: ['i32', 'ptr', 'i32', 'ptr', 'i32'], returns: 'i32' },
  lseek: { args: ['i32', I64, 'i32'], returns: I64 },
  mkdirat: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  openat: { args: ['i32', 'ptr', 'i32', 'u32'], returns: 'i32' },
  read: { args: ['i32', 'ptr', I64], returns: I64 },
  readlinkat: { args: ['i32', 'ptr', 'ptr', I64], returns: I64 },
  symlinkat: { args: ['ptr', 'i32', 'ptr'], returns: 'i32' },
  syscall: { args: [I64, I64, I64, I64, I64, I64, I64], returns: I64 },
  unlinkat: { args: ['i32', 'ptr', 'i32'], returns: 'i32' },
  utimensat: { args: ['i32', 'ptr', 'ptr', 'i32'], returns: 'i32' },
  write: { args: ['i32', 'ptr', I64], returns: I64 },
})

/** Repeats a call that was interrupted by a signal. */
function retryInterrupted(call: () => number | bigint): number {
  for (;;) {
    const result = orErrno(call())
    if (result !== -EINTR) return result
  }
}

/** Open descriptors of this thread. */
let table: OpenTable = untracked()

export function trackOpen(shared: OpenTable): void {
  table = shared
}

function opened(fd: number): number {
  if (fd >= 0) table.add(fd)
  return fd
}

/** Appends NUL to a name or link target. */
export function cString(bytes: Uint8Array): Uint8Array {
  const terminated = new Uint8Array(bytes.byteLength + 1)
  terminated.set(bytes)
  return terminated
}

export function closeFd(fd: number): number {
  // Removed before it is closed, because another thread may get the same number right after.
  table.remove(fd)
  return orErrno(libc.close(fd))
}

export function openAt(folder: number, name: Uint8Array, flags: number, mode = 0): number {
  return opened(retryInterrupted(() => libc.openat(folder, name, flags | O_CLOEXEC, mode)))
}

const how = new BigUint64Array(3)

/** `openat2` with these resolution flags. */
export function openAt2(folder: number, path: Uint8Array, flags: number, resolve: number): number {
  how[0] = BigInt(flags | O_CLOEXEC)
  how[1] = 0n
  how[2] = BigInt(resolve)
  return opened(
    retryInterrupted(() => libc.syscall(NR_OPENAT2, folder, Number(ptr(path)), Number(ptr(how)), 24, 0, 0)),
  )
}

/** Fills `into` with the `struct statx` (256 bytes) of a name, or of the descriptor itself when the name is empty. */
export function statAt(folder: number, name: Uint8Array, flags: number, into: Uint8Array): number {
  const mask = 0x7ff
  const path = Number(ptr(name))
  return retryInterrupted(() => libc.syscall(NR.statx, folder, path, flags, mask, Number(ptr(into)), 0))
}

const NOTHING = Uint8Array.of(0)

export function statFd(fd: number, into: Uint8Array): number {
  return statAt(fd, NOTHING, AT_EMPTY_PATH, into)
}

/** Fills `into` with `struct linux_dirent64` records; returns 0 at the end. */
export function readFolder(fd: number, into: Uint8Array): number {
  return retryInterrupted(() => libc.syscall(NR.getdents64, fd, Number(ptr(into)), into.byteLength, 0, 0, 0))
}

export function makeFolderAt(folder: number, name: Uint8Array, mode: number): number {
  return orErrno(libc.mkdirat(folder, name, mode))
}

/** Removes a name; never the target of a link. */
export function unlinkAt(folder: number, name: Uint8Array, flags: number): number {
  return orErrno(libc.unlinkat(folder, name, flags))
}

export interface EntryRef {
  readonly folder: number
  readonly name: Uint8Array
}

/** Replaces the target, fails when it exists, or exchanges the two. */
export function renameAt(from: EntryRef, to: EntryRef, how: 'over' | 'beside' | 'exchange'): number {
  const flags = how === 'over' ? 0 : how === 'beside' ? RENAME_NOREPLACE : RENAME_EXCHANGE
  const [old, next] = [Number(ptr(from.name)), Number(ptr(to.name))]
  return orErrno(libc.syscall(NR.renameat2, from.folder, old, to.folder, next, flags, 0))
}

export function linkAt(from: EntryRef, to: EntryRef, flags: number): number {
  return orErrno(libc.linkat(from.folder, from.name, to.folder, to.name, flags))
}

export function symlinkAt(target: Uint8Array, folder: number, name: Uint8Array): number {
  return orErrno(libc.symlinkat(target, folder, name))
}

/** Writes the link target to `into` and returns its length. */
export function readLinkAt(folder: number, name: Uint8Array, into: Uint8Array): number {
  return orErrno(libc.readlinkat(folder, name, into, into.byteLength))
}

export function chmodFd(fd: number, mode: number): number {
  return orErrno(libc.fchmod(fd, mode))
}

export function truncateFd(fd: number, bytes: number): number {
  return retryInterrupted(() => libc.ftruncate(fd, bytes))
}

const UTIME_OMIT = 0x3ffffffen

/** Two `struct timespec`; the access time is not changed. */
function timesOf(mtimeNs: bigint): BigInt64Array {
  const inSecond = ((mtimeNs % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n
  return BigInt64Array.of(0n, UTIME_OMIT, (mtimeNs - inSecond) / 1_000_000_000n, inSecond)
}

export function setTimeFd(fd: number, mtimeNs: bigint): number {
  return orErrno(libc.futimens(fd, timesOf(mtimeNs)))
}

/** Sets the time of a name; of a link itself with AT_SYMLINK_NOFOLLOW. */
export function setTimeAt(folder: number, name: Uint8Array, mtimeNs: bigint, flags: number): number {
  return orErrno(libc.utimensat(folder, name, timesOf(mtimeNs), flags))
}

export function readFd(fd: number, into: Uint8Array): number {
  return retryInterrupted(() => libc.read(fd, into, into.byteLength))
}

export function writeFd(fd: number, bytes: Uint8Array): number {
  return retryInterrupted(() => libc.write(fd, bytes, bytes.byteLength))
}

/** `lseek`. */
export function seekFd(fd: number, offset: number, whence: number): number {
  return orErrno(libc.lseek(fd, offset, whence))
}

/** `copy_file_range` at the current positions: copies inside the kernel and shares blocks where the file system can. */
export function copyRange(from: number, to: number, bytes: number): number {
  return retryInterrupted(() => libc.syscall(NR.copyFileRange, from, 0, to, 0, bytes, 0))
}

/** Drops the supplementary groups of this thread only; the C library's function would drop them for every thread. */
export function dropGroups(): number {
  const result = orErrno(libc.syscall(NR.setgroups, 0, 0, 0, 0, 0, 0))
  return result < 0 ? result : orErrno(libc.syscall(NR.getgroups, 0, 0, 0, 0, 0, 0))
}

/** An open descriptor that is closed when it goes out of scope, unless it was released. */
export class Descriptor implements Disposable {
  #fd: number

  constructor(fd: number) {
    this.#fd = fd
  }

  get fd(): number {
    return this.#fd
  }

  /** Transfers ownership: the caller closes it. */
  release(): number {
    const fd = this.#fd
    this.#fd = -1
    return fd
  }

  [Symbol.dispose](): void {
    if (this.#fd >= 0) closeFd(this.#fd)
    this.#fd = -1
  }
}
