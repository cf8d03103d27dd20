import { dlopen, read } from 'bun:ffi'
import { closeFd, EINTR, O_CLOEXEC, O_NONBLOCK, readFd } from '../../processes/linux/libc.ts'
import {
  decodeInotify,
  IN_ATTRIB,
  IN_CREATE,
  IN_DELETE,
  IN_DELETE_SELF,
  IN_MODIFY,
  IN_MOVE_SELF,
  IN_MOVED_FROM,
  IN_MOVED_TO,
  type InotifyEvent,
} from './inotify-event.ts'

/** Refuse what is no folder; nothing about files that are open after they were removed. */
const IN_ONLYDIR = 0x0100_0000
const IN_EXCL_UNLINK = 0x0400_0000

const OF_ITSELF = IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
const OF_CONTENTS =
  OF_ITSELF | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_EXCL_UNLINK

/** What is read at a time, and how often before others have their turn. */
const READ_BYTES = 64 * 1024
const READS = 16

const { symbols: libc } = dlopen('libc.so.6', {
  __errno_location: { args: [], returns: 'ptr' },
  inotify_init1: { args: ['i32'], returns: 'i32' },
  inotify_add_watch: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  inotify_rm_watch: { args: ['i32', 'i32'], returns: 'i32' },
})

/** errno is per thread and its address does not move; this module runs on one thread. */
const errnoAddress = libc.__errno_location()

function orErrno(result: number): number {
  return result >= 0 || errnoAddress === null ? result : -read.i32(errnoAddress, 0)
}

/** One queue of the kernel that tells of folders. */
export class Inotify {
  readonly fd: number
  readonly #buffer = new Uint8Array(READ_BYTES)

  private constructor(fd: number) {
    this.fd = fd
  }

  /** Undefined when the system has no more of them. */
  static open(): Inotify | undefined {
    const fd = orErrno(libc.inotify_init1(O_NONBLOCK | O_CLOEXEC))
    return fd < 0 ? undefined : new Inotify(fd)
  }

  /**
   * Watches an open folder: what happens in it, or only that it is moved or removed itself. Returns the number of the watch,
   * which is the same for the same folder, or a negative errno.
   */
  watch(folder: number, what: 'contents' | 'itself'): number {
    // The descriptor, not a path: what was opened beneath the workspace is what is watched.
    const path = Buffer.from(`/proc/self/fd/${folder}\0`)
    return orErrno(libc.inotify_add_watch(this.fd, path, what === 'contents' ? OF_CONTENTS : OF_ITSELF))
  }

  /** A watch that is gone already is let be. */
  unwatch(watch: number): void {
    libc.inotify_rm_watch(this.fd, watch)
  }

  /** What has happened, without waiting; the rest in the next turn. */
  *take(): Generator<InotifyEvent> {
    for (let count = 0; count < READS; count += 1) {
      const bytes = readFd(this.fd, this.#buffer)
      if (bytes === -EINTR) continue
      if (bytes <= 0) return
      yield* decodeInotify(this.#buffer.subarray(0, bytes))
    }
  }

  /** Ends all watches. */
  close(): void {
    closeFd(this.fd)
  }
}
