import { FFIType, ptr } from 'bun:ffi'
import { openLibc, orErrno } from './open-libc.ts'

/** Linux errno values used here. */
export const EINTR = 4
export const EAGAIN = 11
export const ENOSYS = 38

/** Open flags, asm-generic: the same on x86-64 and arm64. */
export const O_RDWR = 0o2
export const O_NOCTTY = 0o400
export const O_NONBLOCK = 0o4000
export const O_CLOEXEC = 0o2000000

const POLLIN = 1
const F_GETFL = 3
const F_SETFL = 4
const F_SETPIPE_SZ = 1031
const FIONREAD = 0x541b
/** System call numbers above 423 are the same on every architecture. */
const SYS_PIDFD_SEND_SIGNAL = 424
const SYS_PIDFD_OPEN = 434
const SYS_FACCESSAT2 = 439
/** Older calls, without a wrapper in glibc. */
const AIO_CALLS =
  process.arch === 'arm64'
    ? { setup: 0, submit: 2, getEvents: 4 }
    : { setup: 206, submit: 209, getEvents: 208 }

const AT_FDCWD = -100
/** Checks effective ids, not real ones. */
const AT_EACCESS = 0x200
const X_OK = 1

/** The kernel's `struct io_event`. */
export const AIO_EVENT_BYTES = 32

const libc = openLibc({
  close: { args: ['i32'], returns: 'i32' },
  epoll_create1: { args: ['i32'], returns: 'i32' },
  epoll_ctl: { args: ['i32', 'i32', 'i32', 'ptr'], returns: 'i32' },
  epoll_wait: { args: ['i32', 'ptr', 'i32', 'i32'], returns: 'i32' },
  eventfd: { args: ['u32', 'i32'], returns: 'i32' },
  fcntl: { args: ['i32', 'i32', FFIType.i64_fast], returns: 'i32' },
  ioctl: { args: ['i32', FFIType.u64_fast, 'ptr'], returns: 'i32' },
  kill: { args: ['i32', 'i32'], returns: 'i32' },
  pipe2: { args: ['ptr', 'i32'], returns: 'i32' },
  ppoll: { args: ['ptr', 'u64', 'ptr', 'ptr'], returns: 'i32' },
  posix_openpt: { args: ['i32'], returns: 'i32' },
  read: { args: ['i32', 'ptr', FFIType.u64_fast], returns: FFIType.i64_fast },
  sched_yield: { args: [], returns: 'i32' },
  setfsgid: { args: ['u32'], returns: 'u32' },
  setfsuid: { args: ['u32'], returns: 'u32' },
  syscall: {
    args: [FFIType.i64_fast, FFIType.i64_fast, FFIType.i64_fast, FFIType.i64_fast, FFIType.i64_fast],
    returns: FFIType.i64_fast,
  },
  write: { args: ['i32', 'ptr', FFIType.u64_fast], returns: FFIType.i64_fast },
})

/** The same function with its last argument passed by value: C's variadic `ioctl` takes both. */
const byValue = openLibc({
  ioctl: { args: ['i32', FFIType.u64_fast, FFIType.u64_fast], returns: 'i32' },
})

/** `io_getevents` has one argument more than the other calls here. */
const ofSix = openLibc({
  syscall: {
    args: [FFIType.i64_fast, FFIType.i64_fast, FFIType.i64_fast, FFIType.i64_fast, 'ptr', 'ptr'],
    returns: FFIType.i64_fast,
  },
})

/** Every function below returns a value ≥ 0, or a negative errno; none throws. */

export function closeFd(fd: number): number {
  return orErrno(libc.close(fd))
}

/** Fills `fds` with a read and a write end, both closed on exec. */
export function pipe2(fds: Int32Array): number {
  return orErrno(libc.pipe2(fds, O_CLOEXEC))
}

export function readFd(fd: number, into: Uint8Array): number {
  return orErrno(libc.read(fd, into, into.byteLength))
}

export function writeFd(fd: number, bytes: Uint8Array): number {
  return bytes.byteLength === 0 ? 0 : orErrno(libc.write(fd, bytes, bytes.byteLength))
}

/** `struct pollfd` and `struct timespec`, filled anew for each call. */
const polled = new Int32Array([-1, POLLIN])
const pollTime = new BigInt64Array(2)

/** Waits until `fd` is readable or has hung up; 0 when the time, less than a second, is over first. */
export function awaitReadable(fd: number, nanoseconds: number): number {
  polled[0] = fd
  pollTime[1] = BigInt(nanoseconds)
  return orErrno(libc.ppoll(polled, 1, pollTime, null))
}

/** Lets other runnable threads go first. */
export function yieldProcessor(): void {
  libc.sched_yield()
}

export function setNonBlocking(fd: number): number {
  const flags = orErrno(libc.fcntl(fd, F_GETFL, 0))
  return flags < 0 ? flags : orErrno(libc.fcntl(fd, F_SETFL, flags | O_NONBLOCK))
}

export function setPipeBytes(fd: number, bytes: number): number {
  return orErrno(libc.fcntl(fd, F_SETPIPE_SZ, bytes))
}

const readable = new Int32Array(1)

/** Bytes a read would return now. Unlike a read or poll of a terminal, it does not wait for the kernel's pending work. */
export function readableBytes(fd: number): number {
  const result = ioctlPointer(fd, FIONREAD, readable)
  return result < 0 ? result : (readable[0] ?? 0)
}

export function openPtyMaster(flags: number): number {
  return orErrno(libc.posix_openpt(flags))
}

export function ioctlPointer(fd: number, request: number, argument: NodeJS.TypedArray): number {
  return orErrno(libc.ioctl(fd, request, argument))
}

export function ioctlValue(fd: number, request: number, argument: number): number {
  return orErrno(byValue.ioctl(fd, request, argument))
}

/** `pid` below zero names a process group. */
export function kill(pid: number, signal: number): number {
  return orErrno(libc.kill(pid, signal))
}

/** A descriptor of this process, which stays valid when its pid is reused. */
export function openPidFd(pid: number): number {
  return orErrno(libc.syscall(SYS_PIDFD_OPEN, pid, 0, 0, 0))
}

export function signalPidFd(pidFd: number, signal: number): number {
  return orErrno(libc.syscall(SYS_PIDFD_SEND_SIGNAL, pidFd, signal, 0, 0))
}

/** 0 when the effective user may execute the file at an absolute path; `-ENOSYS` before Linux 5.8. */
export function checkExecutable(file: string): number {
  const path = Buffer.from(`${file}\0`)
  return orErrno(libc.syscall(SYS_FACCESSAT2, AT_FDCWD, Number(ptr(path)), X_OK, AT_EACCESS))
}

/** Sets the user for file permissions of this thread. Returns the previous one; a refusal shows only in the next call. */
export function setFileUser(uid: number): number {
  return libc.setfsuid(uid)
}

export function setFileGroup(gid: number): number {
  return libc.setfsgid(gid)
}

export function createEpoll(): number {
  return orErrno(libc.epoll_create1(O_CLOEXEC))
}

/** `event` is the kernel's `struct epoll_event`. */
export function controlEpoll(epollFd: number, operation: number, fd: number, event: Uint8Array): number {
  return orErrno(libc.epoll_ctl(epollFd, operation, fd, event))
}

/** Fills `events` with up to `count` events, without waiting. */
export function takeEpollEvents(epollFd: number, events: Uint8Array, count: number): number {
  return orErrno(libc.epoll_wait(epollFd, events, count, 0))
}

/** A counter whose descriptor can be read when it is not zero; non-blocking, closed on exec. */
export function createEventFd(): number {
  return orErrno(libc.eventfd(0, O_NONBLOCK | O_CLOEXEC))
}

/** Creates a context for `requests` concurrent requests and writes its id to `context`. */
export function setUpAio(requests: number, context: BigUint64Array): number {
  return orErrno(libc.syscall(AIO_CALLS.setup, requests, Number(ptr(context)), 0, 0))
}

/** Submits one `struct iocb`, which `list` holds the address of. */
export function submitAio(context: bigint, list: BigUint64Array): number {
  return orErrno(libc.syscall(AIO_CALLS.submit, Number(context), list.length, Number(ptr(list)), 0))
}

/** Collects completed requests, as many as fit into `events`, without waiting. */
export function takeAioEvents(context: bigint, events: Uint8Array): number {
  const count = Math.floor(events.byteLength / AIO_EVENT_BYTES)
  return orErrno(ofSix.syscall(AIO_CALLS.getEvents, Number(context), 0, count, events, null))
}
