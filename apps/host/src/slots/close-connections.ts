import { dlopen, ptr } from 'bun:ffi'
import { readdirSync, readlinkSync } from 'node:fs'

/** The same on all architectures. */
const PIDFD_OPEN = 434
const PIDFD_GETFD = 438
const SOL_SOCKET = 1
const SO_PEERCRED = 17
const SO_DOMAIN = 39
const AF_UNIX = 1
const SHUT_RDWR = 2
/** Sizes of `struct sockaddr_un` and of its family field. */
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

/** A socket option as 32-bit numbers; undefined when not available. */
function readOption(library: Library, fd: number, option: number, numbers: number): Int32Array | undefined {
  const value = new Int32Array(numbers)
  const length = new Int32Array([value.byteLength])
  return library.getsockopt(fd, SOL_SOCKET, option, ptr(value), ptr(length)) === 0 ? value : undefined
}

/** True when the peer is bound to a path, unlike in a socket pair. */
function isDialed(library: Library, fd: number): boolean {
  const address = new Uint8Array(MAX_ADDRESS_BYTES)
  const length = new Int32Array([address.byteLength])
  return library.getpeername(fd, ptr(address), ptr(length)) === 0 && (length[0] ?? 0) > FAMILY_BYTES
}

/** Pid of the listener of a unix socket connection: zero when it is gone, undefined for other sockets. */
function readPeer(library: Library, fd: number): number | undefined {
  if (readOption(library, fd, SO_DOMAIN, 1)?.[0] !== AF_UNIX || !isDialed(library, fd)) return undefined
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
        // Closed meanwhile.
        return false
      }
    })
    .map(Number)
}

/**
 * Shuts down the unix socket connections that another process of this user has opened, except those to `exceptPids`. Neither
 * end needs to cooperate. False when the kernel does not allow it.
 */
export function closeConnections(pid: number, exceptPids: ReadonlySet<number>): boolean {
  const opened = openLibrary()
  const library = opened.symbols
  const handle = Number(library.syscall(PIDFD_OPEN, pid, 0, 0))
  try {
    if (handle < 0) return false
    for (const fd of listSockets(pid)) {
      const copy = Number(library.syscall(PIDFD_GETFD, handle, fd, 0))
      // Closed meanwhile, or not permitted, which then applies to all.
      if (copy < 0 && isOpen(pid, fd)) return false
      if (copy < 0) continue
      const peer = readPeer(library, copy)
      if (peer !== undefined && !exceptPids.has(peer)) library.shutdown(copy, SHUT_RDWR)
      library.close(copy)
    }
    return true
  } catch {
    // Descriptors not readable.
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
