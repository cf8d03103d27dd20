import { ptr } from 'bun:ffi'
import { readdirSync } from 'node:fs'
import { openLibc } from '../libc.ts'
import { networkKey } from './connection-limits.ts'

/** The same on all architectures. */
const PIDFD_OPEN = 434
const PIDFD_GETFD = 438
const AF_INET = 2
const AF_INET6 = 10
const SHUT_RDWR = 2
const SOL_SOCKET = 1
const SO_ATTACH_FILTER = 26
const SO_DETACH_FILTER = 27
const SO_ACCEPTCONN = 30
const IPPROTO_TCP = 6
const TCP_INFO = 11
/** Sizes of `struct sockaddr_in6` and of `struct tcp_info` up to `tcpi_bytes_received`, its last field here. */
const ADDRESS_BYTES = 28
const TCP_INFO_BYTES = 136
const RECEIVED_OFFSET = 128
/** One instruction of classic BPF: keep 0 bytes of the packet. */
const DROP_ALL = new Uint16Array([0x06, 0, 0, 0])

/** A connection of a client. */
export interface AcceptedSocket {
  /** Its number in the process. */
  readonly fd: number
  readonly network: string
  /** Address and port of the client. */
  readonly peer: string
}

/** The sockets of another process of this user that it accepted on a port. Neither end needs to cooperate. */
export class AcceptedSockets {
  readonly #pid: number
  readonly #port: number
  readonly #address = new Uint8Array(ADDRESS_BYTES)
  readonly #info = new DataView(new ArrayBuffer(TCP_INFO_BYTES))
  readonly #length = new Int32Array(1)
  readonly #libc = openLibc({
    syscall: { args: ['i64', 'i64', 'i64', 'i64'], returns: 'i64' },
    getpeername: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
    getsockname: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
    getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
    setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'i32'], returns: 'i32' },
    shutdown: { args: ['i32', 'i32'], returns: 'i32' },
    close: { args: ['i32'], returns: 'i32' },
  })

  constructor(pid: number, port: number) {
    this.#pid = pid
    this.#port = port
  }

  /** All connections; undefined when the kernel does not permit access to them. */
  list(): readonly AcceptedSocket[] | undefined {
    const found: AcceptedSocket[] = []
    let copies = 0
    const fds = this.#descriptors()
    this.#each(fds, (copy, fd) => {
      copies += 1
      const peer = this.#readPeer(copy)
      if (peer !== undefined) found.push({ fd, ...peer })
    })
    return fds.length > 0 && copies === 0 ? undefined : found
  }

  /** Closes this many of these connections: those that sent least, which are idle ones before others. */
  close(sockets: readonly AcceptedSocket[], count: number): void {
    const sent = new Map(sockets.map(({ fd }) => [fd, 0]))
    this.#each([...sent.keys()], (copy, fd) => void sent.set(fd, this.#readReceived(copy)))
    const chosen = sockets
      .toSorted((one, other) => (sent.get(one.fd) ?? 0) - (sent.get(other.fd) ?? 0))
      .slice(0, count)
    const peers = new Map(chosen.map(({ fd, peer }) => [fd, peer]))
    this.#each([...peers.keys()], (copy, fd) => {
      // The number may belong to another connection by now.
      if (this.#readPeer(copy)?.peer === peers.get(fd)) this.#libc.shutdown(copy, SHUT_RDWR)
    })
  }

  /**
   * Whether new connections wait: the kernel then drops their packets, and clients repeat them after a second. Established
   * connections are not affected.
   */
  hold(isHeld: boolean): void {
    // `struct sock_fprog`: the number of instructions, and where they are.
    const header = new BigUint64Array([1n, BigInt(ptr(DROP_ALL))])
    this.#each(this.#descriptors(), (copy) => {
      if (this.#readNumber(copy, SO_ACCEPTCONN) !== 1 || this.#readLocalPort(copy) !== this.#port) return
      const option = isHeld ? SO_ATTACH_FILTER : SO_DETACH_FILTER
      this.#libc.setsockopt(copy, SOL_SOCKET, option, ptr(header), header.byteLength)
    })
  }

  #descriptors(): readonly number[] {
    try {
      return readdirSync(`/proc/${this.#pid}/fd`).map(Number)
    } catch {
      // The process has ended.
      return []
    }
  }

  /** Calls with a copy of each descriptor, which is closed afterwards; with none when the process cannot be opened. */
  #each(fds: readonly number[], visit: (copy: number, fd: number) => void): void {
    const { syscall, close } = this.#libc
    const handle = Number(syscall(PIDFD_OPEN, this.#pid, 0, 0))
    if (handle < 0) return
    for (const fd of fds) {
      const copy = Number(syscall(PIDFD_GETFD, handle, fd, 0))
      if (copy < 0) continue
      visit(copy, fd)
      close(copy)
    }
    close(handle)
  }

  /** The client of a connection that was accepted on the port; undefined for other descriptors. */
  #readPeer(copy: number): Pick<AcceptedSocket, 'network' | 'peer'> | undefined {
    this.#length[0] = ADDRESS_BYTES
    if (this.#libc.getpeername(copy, ptr(this.#address), ptr(this.#length)) !== 0) return undefined
    const [family] = this.#address
    if (family !== AF_INET && family !== AF_INET6) return undefined
    const address = family === AF_INET ? this.#address.subarray(4, 8) : this.#address.subarray(8, 24)
    const network = networkKey(address)
    const peer = `${address.toHex()}:${this.#readPort()}`
    return this.#readLocalPort(copy) === this.#port ? { network, peer } : undefined
  }

  #readLocalPort(copy: number): number | undefined {
    this.#length[0] = ADDRESS_BYTES
    const isRead = this.#libc.getsockname(copy, ptr(this.#address), ptr(this.#length)) === 0
    const [family] = this.#address
    return isRead && (family === AF_INET || family === AF_INET6) ? this.#readPort() : undefined
  }

  /** The port of the address that was read last; its place does not depend on the family. */
  #readPort(): number {
    return ((this.#address[2] ?? 0) << 8) | (this.#address[3] ?? 0)
  }

  #readNumber(copy: number, option: number): number | undefined {
    const value = new Int32Array(1)
    this.#length[0] = value.byteLength
    const isRead = this.#libc.getsockopt(copy, SOL_SOCKET, option, ptr(value), ptr(this.#length)) === 0
    return isRead ? value[0] : undefined
  }

  /** Bytes that the client sent; 0 when not known. */
  #readReceived(copy: number): number {
    this.#length[0] = TCP_INFO_BYTES
    const { buffer } = this.#info
    const isRead = this.#libc.getsockopt(copy, IPPROTO_TCP, TCP_INFO, ptr(buffer), ptr(this.#length)) === 0
    return isRead && this.#length[0] === TCP_INFO_BYTES
      ? Number(this.#info.getBigUint64(RECEIVED_OFFSET, true))
      : 0
  }
}
