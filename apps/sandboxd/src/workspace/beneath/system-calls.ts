import { dlopen, FFIType, ptr, read } from 'bun:ffi'
import { AT_EMPTY_PATH, EINTR, O_CLOEXEC, RENAME_EXCHANGE, RENAME_NOREPLACE } from './constants.ts'

/** Descriptors below this number are followed; a process has rarely more. */
const TRACKED = 65_536

/**
 * Which descriptors a thread has open, in memory that another thread sees: when the thread ends without closing them, the
 * other one does. A descriptor that is handed over is taken out by whoever got it.
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

  /** Descriptors that are open, all of which are taken out. */
  take(): number[] {
    const fds: number[] = []
    for (const [fd, isOpen] of this.#open.entries()) if (isOpen === 1) fds.push(fd)
    this.#open.fill(0)
    return fds
  }
}

/** Where nobody else would clean up. */
function untracked(): OpenTable {
  return new OpenTable()
}

/**
 * The system calls that files are reached by, all relative to an open folder. Every function returns a value ≥ 0 or a negative
 * errno; none throws. Names are bytes that end with a zero, as `cString` makes them.
 */

/** Numbers of calls that older C libraries have no functions for. */
const NR =
  process.arch === 'arm64'
    ? { getdents64: 61, renameat2: 276, statx: 291, copyFileRange: 285, setgroups: 159, getgroups: 158 }
    : { getdents64: 217, renameat2: 316, statx: 332, copyFileRange: 326, setgroups: 116, getgroups: 115 }
const NR_OPENAT2 = 437

const I64 = FFIType.i64_fast
const { symbols: libc } = dlopen('libc.so.6', {
  __errno_location: { args: [], returns: 'ptr' },
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

/** errno is per thread and its address does not move; every thread has this module for itself. */
const errnoAddress = libc.__errno_location()

function orErrno(result: number | bigint): number {
  const value = Number(result)
  if (value >= 0 || errnoAddress === null) return value
  return -read.i32(errnoAddress, 0)
}

/** Repeats a call that a signal interrupted. */
function uninterrupted(call: () => number | bigint): number {
  for (;;) {
    const result = orErrno(call())
    if (result !== -EINTR) return result
  }
}

/** Which descriptors this thread has open, for whoever cleans up behind it. */
let table: OpenTable = untracked()

export function trackOpen(shared: OpenTable): void {
  table = shared
}

function opened(fd: number): number {
  if (fd >= 0) table.add(fd)
  return fd
}

/** A name, or a text of a link, as C has it. */
export function cString(bytes: Uint8Array): Uint8Array {
  const terminated = new Uint8Array(bytes.byteLength + 1)
  terminated.set(bytes)
  return terminated
}

export function closeFd(fd: number): number {
  // First, because the number may be somebody else's right after.
  table.remove(fd)
  return orErrno(libc.close(fd))
}

export function openAt(folder: number, name: Uint8Array, flags: number, mode = 0): number {
  return opened(uninterrupted(() => libc.openat(folder, name, flags | O_CLOEXEC, mode)))
}

const how = new BigUint64Array(3)

/** `openat2`: finds a path as `resolve` says, however many folders and links are on the way. */
export function openAt2(folder: number, path: Uint8Array, flags: number, resolve: number): number {
  how[0] = BigInt(flags | O_CLOEXEC)
  how[1] = 0n
  how[2] = BigInt(resolve)
  return opened(
    uninterrupted(() => libc.syscall(NR_OPENAT2, folder, Number(ptr(path)), Number(ptr(how)), 24, 0, 0)),
  )
}

/** Fills `into`, a `struct statx` of 256 bytes, with what is known of a name, or of the descriptor itself when it is empty. */
export function statAt(folder: number, name: Uint8Array, flags: number, into: Uint8Array): number {
  const mask = 0x7ff
  const path = Number(ptr(name))
  return uninterrupted(() => libc.syscall(NR.statx, folder, path, flags, mask, Number(ptr(into)), 0))
}

const NOTHING = Uint8Array.of(0)

export function statFd(fd: number, into: Uint8Array): number {
  return statAt(fd, NOTHING, AT_EMPTY_PATH, into)
}

/** Fills `into` with `struct linux_dirent64`s; 0 at the end. */
export function readFolder(fd: number, into: Uint8Array): number {
  return uninterrupted(() => libc.syscall(NR.getdents64, fd, Number(ptr(into)), into.byteLength, 0, 0, 0))
}

export function makeFolderAt(folder: number, name: Uint8Array, mode: number): number {
  return orErrno(libc.mkdirat(folder, name, mode))
}

/** Removes a name, never what a link leads to. */
export function unlinkAt(folder: number, name: Uint8Array, flags: number): number {
  return orErrno(libc.unlinkat(folder, name, flags))
}

export interface Place {
  readonly folder: number
  readonly name: Uint8Array
}

/** Plainly, or never over something, or changing places. */
export function renameAt(from: Place, to: Place, how: 'over' | 'beside' | 'exchange'): number {
  const flags = how === 'over' ? 0 : how === 'beside' ? RENAME_NOREPLACE : RENAME_EXCHANGE
  const [old, next] = [Number(ptr(from.name)), Number(ptr(to.name))]
  return orErrno(libc.syscall(NR.renameat2, from.folder, old, to.folder, next, flags, 0))
}

export function linkAt(from: Place, to: Place, flags: number): number {
  return orErrno(libc.linkat(from.folder, from.name, to.folder, to.name, flags))
}

export function symlinkAt(target: Uint8Array, folder: number, name: Uint8Array): number {
  return orErrno(libc.symlinkat(target, folder, name))
}

/** Bytes of the link's text, written to `into`. */
export function readLinkAt(folder: number, name: Uint8Array, into: Uint8Array): number {
  return orErrno(libc.readlinkat(folder, name, into, into.byteLength))
}

export function chmodFd(fd: number, mode: number): number {
  return orErrno(libc.fchmod(fd, mode))
}

export function truncateFd(fd: number, bytes: number): number {
  return uninterrupted(() => libc.ftruncate(fd, bytes))
}

const UTIME_OMIT = 0x3ffffffen

/** Two `struct timespec`: when it was read is left alone. */
function timesOf(mtimeNs: bigint): BigInt64Array {
  const inSecond = ((mtimeNs % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n
  return BigInt64Array.of(0n, UTIME_OMIT, (mtimeNs - inSecond) / 1_000_000_000n, inSecond)
}

export function setTimeFd(fd: number, mtimeNs: bigint): number {
  return orErrno(libc.futimens(fd, timesOf(mtimeNs)))
}

/** The same for a name; of a link itself. */
export function setTimeAt(folder: number, name: Uint8Array, mtimeNs: bigint, flags: number): number {
  return orErrno(libc.utimensat(folder, name, timesOf(mtimeNs), flags))
}

export function readFd(fd: number, into: Uint8Array): number {
  return uninterrupted(() => libc.read(fd, into, into.byteLength))
}

export function writeFd(fd: number, bytes: Uint8Array): number {
  return uninterrupted(() => libc.write(fd, bytes, bytes.byteLength))
}

/** Moves where a file is read and written; `whence` as C has it. */
export function seekFd(fd: number, offset: number, whence: number): number {
  return orErrno(libc.lseek(fd, offset, whence))
}

/** Copies from where one file is read to where the other is written, inside the kernel, sharing blocks where the disk can. */
export function copyRange(from: number, to: number, bytes: number): number {
  return uninterrupted(() => libc.syscall(NR.copyFileRange, from, 0, to, 0, bytes, 0))
}

/** Takes all further groups from this thread; the C library would take them from every thread. */
export function dropGroups(): number {
  const result = orErrno(libc.syscall(NR.setgroups, 0, 0, 0, 0, 0, 0))
  return result < 0 ? result : orErrno(libc.syscall(NR.getgroups, 0, 0, 0, 0, 0, 0))
}

/** An open file or folder that is closed when it goes out of use, unless it was given away. */
export class Descriptor implements Disposable {
  #fd: number

  constructor(fd: number) {
    this.#fd = fd
  }

  get fd(): number {
    return this.#fd
  }

  /** Leaves it open, for the caller to close. */
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
