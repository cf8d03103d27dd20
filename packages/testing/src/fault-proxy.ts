import type { TCPSocketListener } from 'bun'
import type { DirectionFaults } from './fault-queue.ts'
import {
  type ConnectionOwner,
  type DisconnectKind,
  type Direction,
  ProxyConnection,
  type Socket,
} from './proxy-connection.ts'
import { Random } from './random.ts'
import {
  connectWithSmallBuffers,
  reservePort,
  type ReservedPort,
  shrinkSocketBuffers,
} from './small-buffer-socket.ts'

const HOST = '127.0.0.1'

/** What happens to a client that connects. */
export type NewConnections =
  | 'accept'
  /** The port is closed: the client gets ECONNREFUSED, as from a relay that is down. */
  | 'refuse'
  /** The client is connected, but the proxy neither reads nor dials the target until this ends. */
  | 'hold'

export interface ProxyFaults {
  readonly toClient?: DirectionFaults
  readonly toTarget?: DirectionFaults
  readonly newConnections?: NewConnections
}

export interface FaultProxyOptions {
  readonly target: { readonly port: number; /** Dotted IPv4; default 127.0.0.1. */ readonly host?: string }
  /** Source of jitter; default is seed 0. */
  readonly random?: Random
}

/** Totals since the proxy was opened. */
export interface ProxyStats {
  readonly accepted: number
  /** Clients reset because the target refused them. */
  readonly targetRefused: number
  /** Connections closed by `disconnectAll` or `disconnectAfterBytes`. */
  readonly disconnects: number
  readonly bytesToClient: number
  readonly bytesToTarget: number
}

interface PendingDisconnect {
  readonly direction: Direction
  readonly kind: DisconnectKind
  bytesLeft: number
}

type SocketData = Socket['data']

/**
 * A TCP proxy that simulates a bad network. It preserves back-pressure in both directions and buffers little:
 * per connection and direction at most about 16 KiB in the receive buffer, 16 KiB of its own (plus what is in
 * flight when there is latency) and 16 KiB in the send buffer, besides the socket buffers of the two ends.
 */
export class FaultProxy implements AsyncDisposable {
  readonly port: number
  readonly #target: { readonly host: string; readonly port: number }
  readonly #reserved: ReservedPort
  readonly #owner: ConnectionOwner
  #listener: TCPSocketListener<SocketData> | undefined
  #faults: Required<ProxyFaults> = { toClient: {}, toTarget: {}, newConnections: 'accept' }
  readonly #connections = new Set<ProxyConnection>()
  /** Accepted while new connections are held. */
  readonly #held = new Set<ProxyConnection>()
  #pendingDisconnects: PendingDisconnect[] = []
  readonly #closing = new AbortController()
  readonly #totals = { accepted: 0, targetRefused: 0, disconnects: 0, bytesToClient: 0, bytesToTarget: 0 }

  constructor({ target, random = new Random(0) }: FaultProxyOptions) {
    this.#target = { host: HOST, ...target }
    this.#owner = {
      allowance: (direction) => this.#pendingDisconnect(direction)?.bytesLeft ?? Number.POSITIVE_INFINITY,
      forwarded: (direction, bytes, connection) => this.#forwarded(direction, bytes, connection),
      closed: (connection) => this.#forget(connection),
      nextRandom: () => random.next(),
    }
    this.#reserved = reservePort(HOST)
    this.port = this.#reserved.port
    this.#listen()
  }

  get url(): string {
    return `http://${HOST}:${this.port}`
  }

  /** The connections that are open, oldest first. */
  get connections(): readonly ProxyConnection[] {
    return [...this.#connections]
  }

  get stats(): ProxyStats {
    return { ...this.#totals }
  }

  /** Replaces the given fields and keeps the others; `{ toClient: {} }` removes the faults of that direction. */
  setFaults(faults: ProxyFaults): void {
    this.#faults = { ...this.#faults, ...faults }
    for (const connection of this.#connections) connection.setFaults(this.#faults)
    if (this.#faults.newConnections === 'refuse') this.#unlisten()
    else this.#listen()
    if (this.#faults.newConnections === 'hold') return
    for (const connection of this.#held) this.#dial(connection)
    this.#held.clear()
  }

  /** Closes every open connection now and returns their number. `direction` applies to `half` only. */
  disconnectAll(kind: DisconnectKind, direction: Direction = 'toClient'): number {
    const connections = this.connections
    for (const connection of connections) this.#disconnect(connection, kind, direction)
    return connections.length
  }

  /**
   * After `bytes` more in one direction, over all connections, closes the connection that carried the last one. Happens once.
   * With `fin` or `half` the receiver gets exactly that many; with `reset` at most that many, because a reset
   * discards unread bytes.
   */
  disconnectAfterBytes(direction: Direction, bytes: number, kind: DisconnectKind = 'reset'): void {
    if (!(Number.isSafeInteger(bytes) && bytes > 0))
      throw new RangeError(`Cannot disconnect after "${bytes}" bytes`)
    this.#pendingDisconnects.push({ direction, kind, bytesLeft: bytes })
  }

  /** Resets open connections and releases the port. */
  close(): void {
    this.#closing.abort()
    this.#unlisten()
    for (const connection of this.#connections) connection.disconnect('reset')
    this.#reserved[Symbol.dispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
  }

  #listen(): void {
    if (this.#closing.signal.aborted) throw new Error('Cannot change faults: proxy is closed')
    this.#listener ??= this.#openListener()
  }

  #openListener(): TCPSocketListener<SocketData> {
    const listener = Bun.listen<SocketData>({
      hostname: HOST,
      port: this.port,
      allowHalfOpen: true,
      socket: { ...this.#handlers(), open: (socket) => this.#accept(socket) },
    })
    // Bun's listener has `fd`; its types do not.
    if ('fd' in listener && typeof listener.fd === 'number') shrinkSocketBuffers(listener.fd)
    return listener
  }

  #unlisten(): void {
    this.#listener?.stop(false)
    this.#listener = undefined
  }

  #handlers() {
    return {
      data: (socket: Socket, bytes: Buffer) =>
        // Bun reuses the buffer and the bytes may be queued, so they are copied.
        socket.data.connection?.received(socket, new Uint8Array(bytes)),
      drain: (socket: Socket) => socket.data.connection?.drained(socket),
      end: (socket: Socket) => socket.data.connection?.peerEnded(socket),
      close: (socket: Socket, error?: Error) =>
        socket.data.connection?.socketClosed(socket, error !== undefined && error !== null),
      error: (socket: Socket) => socket.terminate(),
    }
  }

  #accept(socket: Socket): void {
    this.#totals.accepted++
    socket.pause()
    socket.setNoDelay(true)
    const connection = new ProxyConnection(this.#totals.accepted, socket, this.#owner)
    socket.data = { connection }
    connection.setFaults(this.#faults)
    this.#connections.add(connection)
    if (this.#faults.newConnections === 'hold') this.#held.add(connection)
    else this.#dial(connection)
  }

  #dial(connection: ProxyConnection): void {
    this.#connectTarget(connection).catch(() => connection.disconnect('reset'))
  }

  async #connectTarget(connection: ProxyConnection): Promise<void> {
    const fd = await connectWithSmallBuffers(this.#target, this.#closing.signal)
    if (fd === undefined) {
      this.#totals.targetRefused++
      return connection.disconnect('reset')
    }
    // Bun accepts a connected `fd` in place of the address; its types do not.
    const options = {
      fd,
      hostname: this.#target.host,
      port: this.#target.port,
      allowHalfOpen: true,
      data: { connection },
      socket: {
        ...this.#handlers(),
        open: (socket: Socket) => void socket.setNoDelay(true),
      },
    }
    const target = await Bun.connect<SocketData>(options)
    if (this.#connections.has(connection)) connection.join(target)
    else target.terminate()
  }

  #pendingDisconnect(direction: Direction): PendingDisconnect | undefined {
    return this.#pendingDisconnects.find((pending) => pending.direction === direction)
  }

  #forwarded(direction: Direction, bytes: number, connection: ProxyConnection): void {
    this.#totals[direction === 'toClient' ? 'bytesToClient' : 'bytesToTarget'] += bytes
    const pending = this.#pendingDisconnect(direction)
    if (pending === undefined) return
    pending.bytesLeft -= bytes
    if (pending.bytesLeft > 0) return
    this.#pendingDisconnects = this.#pendingDisconnects.filter((other) => other !== pending)
    this.#disconnect(connection, pending.kind, direction)
  }

  #disconnect(connection: ProxyConnection, kind: DisconnectKind, direction: Direction): void {
    this.#totals.disconnects++
    connection.disconnect(kind, direction)
  }

  #forget(connection: ProxyConnection): void {
    this.#connections.delete(connection)
    this.#held.delete(connection)
  }
}

/** Opens a proxy on a free loopback port in front of the target. */
export function openFaultProxy(options: FaultProxyOptions): FaultProxy {
  return new FaultProxy(options)
}
