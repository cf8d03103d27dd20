import { pathFromBytes } from '@sandwire/protocol'
import { closeFd, EINTR, O_CLOEXEC, O_NONBLOCK, readFd } from '../../processes/linux/libc.ts'
import { openLibc, orErrno } from '../../processes/linux/open-libc.ts'

/** Event flags of inotify(7). */
const IN_MODIFY = 0x2
const IN_ATTRIB = 0x4
const IN_MOVED_FROM = 0x40
const IN_MOVED_TO = 0x80
export const IN_CREATE = 0x100
const IN_DELETE = 0x200
const IN_DELETE_SELF = 0x400
const IN_MOVE_SELF = 0x800
const IN_UNMOUNT = 0x2000
const IN_Q_OVERFLOW = 0x4000
const IN_IGNORED = 0x8000
const IN_ISDIR = 0x4000_0000

/** Only folders; no events for files that were unlinked while open. */
const IN_ONLYDIR = 0x0100_0000
const IN_EXCL_UNLINK = 0x0400_0000

const OF_ITSELF = IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
const OF_CONTENTS =
  OF_ITSELF | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_EXCL_UNLINK

/** Bytes per read, and reads per turn of the event loop. */
const READ_BYTES = 64 * 1024
const READS = 16

const libc = openLibc({
  inotify_init1: { args: ['i32'], returns: 'i32' },
  inotify_add_watch: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  inotify_rm_watch: { args: ['i32', 'i32'], returns: 'i32' },
})

/** An inotify instance. */
export class Inotify {
  readonly fd: number
  readonly #buffer = new Uint8Array(READ_BYTES)

  private constructor(fd: number) {
    this.fd = fd
  }

  /** Undefined when the system has none left. */
  static open(): Inotify | undefined {
    const fd = orErrno(libc.inotify_init1(O_NONBLOCK | O_CLOEXEC))
    return fd < 0 ? undefined : new Inotify(fd)
  }

  /**
   * Watches an open folder: its contents, or only that it is moved or removed. Returns the watch descriptor, which is the same
   * for the same folder, or a negative errno.
   */
  watch(folder: number, what: 'contents' | 'itself'): number {
    // By descriptor, so that exactly the folder that was opened beneath the workspace is watched.
    const path = Buffer.from(`/proc/self/fd/${folder}\0`)
    return orErrno(libc.inotify_add_watch(this.fd, path, what === 'contents' ? OF_CONTENTS : OF_ITSELF))
  }

  /** Ignores a watch that is gone. */
  unwatch(watch: number): void {
    libc.inotify_rm_watch(this.fd, watch)
  }

  /** Pending events, without blocking; the rest in the next turn. */
  *take(): Generator<InotifyEvent> {
    for (let count = 0; count < READS; count += 1) {
      const bytes = readFd(this.fd, this.#buffer)
      if (bytes === -EINTR) continue
      if (bytes <= 0) return
      yield* decodeInotify(this.#buffer.subarray(0, bytes))
    }
  }

  close(): void {
    closeFd(this.fd)
  }
}

/** `struct inotify_event` without its name. */
const HEADER_BYTES = 16

/** An event of a watched folder. `watch` is the watch descriptor. */
export type InotifyEvent =
  /** The kernel's queue overflowed. */
  | { readonly kind: 'lost' }
  /** The folder itself was moved or removed, or its watch ended. */
  | { readonly kind: 'gone' | 'unwatched'; readonly watch: number }
  | {
      readonly kind: 'created' | 'removed' | 'changed'
      readonly watch: number
      readonly name: string
      readonly isFolder: boolean
    }

/** Decodes bytes read from inotify, which are always whole events. */
export function* decodeInotify(bytes: Uint8Array): Generator<InotifyEvent> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  while (at + HEADER_BYTES <= bytes.byteLength) {
    const nameBytes = view.getUint32(at + 12, true)
    const field = bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + nameBytes)
    const end = field.indexOf(0)
    const name = pathFromBytes(end < 0 ? field : field.subarray(0, end))
    const event = interpret(view.getInt32(at, true), view.getUint32(at + 4, true), name)
    if (event !== undefined) yield event
    at += HEADER_BYTES + nameBytes
  }
}

function interpret(watch: number, mask: number, name: string): InotifyEvent | undefined {
  const has = (bits: number): boolean => (mask & bits) !== 0
  if (has(IN_Q_OVERFLOW)) return { kind: 'lost' }
  if (has(IN_IGNORED)) return { kind: 'unwatched', watch }
  if (has(IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) return { kind: 'gone', watch }
  // An attribute change of the folder itself, which its parent reports.
  if (name === '') return undefined
  const what = { watch, name, isFolder: has(IN_ISDIR) }
  if (has(IN_CREATE | IN_MOVED_TO)) return { kind: 'created', ...what }
  if (has(IN_DELETE | IN_MOVED_FROM)) return { kind: 'removed', ...what }
  return has(IN_MODIFY | IN_ATTRIB) ? { kind: 'changed', ...what } : undefined
}
