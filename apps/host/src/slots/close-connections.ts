import { dlopen, ptr } from 'bun:ffi'
import { readdirSync, readlinkSync } from 'node:fs'

/** The same on every architecture. */
const PIDFD_OPEN = 434
const PIDFD_GETFD = 438
const SOL_SOCKET = 1
const SO_PEERCRED = 17
const SO_DOMAIN = 39
const AF_UNIX = 1
const SHUT_RDWR = 2
/** Size of `struct sockaddr_un`, and of what it begins with. */
const MAX_ADDRESS_BYTES = 110
const FAMILY_BYTES = 2

function openLibrary() {
  return dlopen('libc.so.6', {
    syscall: { args: ['i64', 'i64', 'i64', 'i64'], returns: 'i64' },
    getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
    getpeername: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
    shutdown: { args: ['i32', 'i32'], returns: 'i32' },
    close: { args: ['i32'], returns: 'i32' },
  })
}
type Library = ReturnType<typeof openLibrary>['symbols']

/** The first numbers of a socket's option; undefined when it is no socket, or has no such option. */
function readOption(library: Library, fd: number, option: number, numbers: number): Int32Array | undefined {
  const value = new Int32Array(numbers)
  const length = new Int32Array([value.byteLength])
  return library.getsockopt(fd, SOL_SOCKET, option, ptr(value), ptr(length)) === 0 ? value : undefined
}

/** Whether the other end was bound to a path: an end of a socket pair, as standard output may be, was not. */
function isDialled(library: Library, fd: number): boolean {
  const address = new Uint8Array(MAX_ADDRESS_BYTES)
  const length = new Int32Array([address.byteLength])
  return library.getpeername(fd, ptr(address), ptr(length)) === 0 && (length[0] ?? 0) > FAMILY_BYTES
}

/** Process that listens at the other end of a unix socket: zero when it is gone, undefined for other sockets. */
function readPeer(library: Library, fd: number): number | undefined {
  if (readOption(library, fd, SO_DOMAIN, 1)?.[0] !== AF_UNIX || !isDialled(library, fd)) return undefined
  // Pid, user and group.
  return readOption(library, fd, SO_PEERCRED, 3)?.[0]
}

function listSockets(pid: number): number[] {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder)
    .filter((fd) => {
      try {
        return readlinkSync(`${folder}/${fd}`).startsWith('socket:')
      } catch {
        // Closed by now.
        return false
      }
    })
    .map(Number)
}

/**
 * Shuts down, from outside, the unix sockets that a process of this user has dialled, except those to `exceptPids`.
 * Neither end needs to cooperate. False when this machine does not allow it.
 */
export function closeConnections(pid: number, exceptPids: ReadonlySet<number>): boolean {
  const opened = openLibrary()
  const library = opened.symbols
  const handle = Number(library.syscall(PIDFD_OPEN, pid, 0, 0))
  try {
    if (handle < 0) return false
    for (const fd of listSockets(pid)) {
      const copy = Number(library.syscall(PIDFD_GETFD, handle, fd, 0))
      // Closed by now, or forbidden: then all of them are.
      if (copy < 0 && isOpen(pid, fd)) return false
      if (copy < 0) continue
      const peer = readPeer(library, copy)
      if (peer !== undefined && !exceptPids.has(peer)) library.shutdown(copy, SHUT_RDWR)
      library.close(copy)
    }
    return true
  } catch {
    // Its descriptors cannot be listed.
    return false
  } finally {
    if (handle >= 0) library.close(handle)
    opened.close()
  }
}

function isOpen(pid: number, fd: number): boolean {
  try {
    readlinkSync(`/proc/${pid}/fd/${fd}`)
    return true
  } catch {
    return false
  }
}
