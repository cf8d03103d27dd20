import { dlopen, ptr } from 'bun:ffi'

// Linux values, the same on x86-64 and arm64.
const AF_INET = 2
const SOCK_STREAM = 1
const SOCK_CLOEXEC = 0o2000000
const SOCK_NONBLOCK = 0o4000
const SOL_SOCKET = 1
const SO_REUSEADDR = 2
const SO_ERROR = 4
const SO_SNDBUF = 7
const SO_RCVBUF = 8
const POLLOUT = 4
const ADDRESS_BYTES = 16

/** Poll interval of a pending connection; on loopback the first poll finds it connected. */
const CONNECT_POLL_MS = 2

/** Size requested for each socket buffer; Linux doubles it and uses half for bookkeeping. */
const SOCKET_BUFFER_BYTES = 16 * 1024

export interface Ipv4Address {
  /** Dotted, such as `127.0.0.1`. */
  readonly host: string
  readonly port: number
}

function openLibc() {
  return dlopen('libc.so.6', {
    socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
    bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
    connect: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
    getsockname: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
    setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
    getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
    poll: { args: ['ptr', 'u64', 'i32'], returns: 'i32' },
    close: { args: ['i32'], returns: 'i32' },
  }).symbols
}

const libc = openLibc()

function encodeAddress({ host, port }: Ipv4Address): Uint8Array {
  const parts = host.split('.').map(Number)
  if (parts.length !== 4 || !parts.every((part) => Number.isInteger(part) && part >= 0 && part <= 255)) {
    throw new Error(`Cannot use the address: "${host}" is not dotted IPv4`)
  }
  const bytes = new Uint8Array(ADDRESS_BYTES)
  const view = new DataView(bytes.buffer)
  view.setUint16(0, AF_INET, true)
  view.setUint16(2, port)
  bytes.set(parts, 4)
  return bytes
}

function setOption(fd: number, option: number, value: number): void {
  if (libc.setsockopt(fd, SOL_SOCKET, option, ptr(new Int32Array([value])), 4) !== 0) {
    throw new Error(`Cannot set socket option ${option} of fd ${fd}`)
  }
}

function readOption(fd: number, option: number): number {
  const value = new Int32Array(1)
  if (libc.getsockopt(fd, SOL_SOCKET, option, ptr(value), ptr(new Uint32Array([4]))) !== 0) {
    throw new Error(`Cannot read socket option ${option} of fd ${fd}`)
  }
  return value[0] ?? 0
}

function isWritable(fd: number): boolean {
  const pollfd = new ArrayBuffer(8)
  const view = new DataView(pollfd)
  view.setInt32(0, fd, true)
  view.setInt16(4, POLLOUT, true)
  return libc.poll(ptr(pollfd), 1, 0) === 1
}

/** Makes both kernel buffers small. Connections accepted by a listening socket inherit the sizes. */
export function shrinkSocketBuffers(fd: number, bytes = SOCKET_BUFFER_BYTES): void {
  setOption(fd, SO_RCVBUF, bytes)
  setOption(fd, SO_SNDBUF, bytes)
}

/**
 * Connects with buffers that are small before the handshake, because the receive window cannot shrink
 * afterwards. Returns a descriptor that the caller closes, or `undefined` when refused.
 */
export async function connectWithSmallBuffers(
  address: Ipv4Address,
  signal: AbortSignal,
): Promise<number | undefined> {
  const encoded = encodeAddress(address)
  const fd = libc.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
  if (fd < 0) throw new Error('Cannot create a socket: no descriptor left')
  shrinkSocketBuffers(fd)
  libc.connect(fd, ptr(encoded), ADDRESS_BYTES)
  while (!isWritable(fd) && !signal.aborted) await Bun.sleep(CONNECT_POLL_MS)
  if (!signal.aborted && readOption(fd, SO_ERROR) === 0) return fd
  libc.close(fd)
  return undefined
}

/** A reserved loopback port; connecting to it is refused while nothing listens on it. */
export interface ReservedPort extends Disposable {
  readonly port: number
}

/**
 * Binds a port without listening. A listener with SO_REUSEADDR (every Bun listener) can be opened on it and
 * closed repeatedly; meanwhile the kernel assigns the port to no other process.
 */
export function reservePort(host: string): ReservedPort {
  const fd = libc.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)
  setOption(fd, SO_REUSEADDR, 1)
  const address = encodeAddress({ host, port: 0 })
  if (libc.bind(fd, ptr(address), ADDRESS_BYTES) !== 0)
    throw new Error(`Cannot reserve a port: bind to "${host}" failed`)
  libc.getsockname(fd, ptr(address), ptr(new Uint32Array([ADDRESS_BYTES])))
  return {
    port: new DataView(address.buffer).getUint16(2),
    [Symbol.dispose]: () => void libc.close(fd),
  }
}
