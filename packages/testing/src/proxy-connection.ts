import type { Socket as BunSocket } from 'bun'
import { type DirectionFaults, FaultQueue } from './fault-queue.ts'

/** The end that bytes flow to. */
export type Direction = 'toClient' | 'toTarget'

/** How a connection is closed. */
export type DisconnectKind =
  /** Both ends get RST; bytes still held are lost. */
  | 'reset'
  /** Both ends get FIN after what was already written; later bytes of either end are discarded. */
  | 'fin'
  /** One direction gets FIN and carries nothing more; the other direction stays open. */
  | 'half'

/** How long an end may stay open after `fin` before its socket is reset. */
const FIN_LINGER_MS = 1_000

/** A socket of the proxy; `data.connection` is the connection it belongs to, once that exists. */
export type Socket = BunSocket<{ connection: ProxyConnection | undefined }>

/** Callbacks from a connection to its proxy. */
export interface ConnectionOwner {
  /** Bytes that may be written in this direction before a planned disconnect. */
  readonly allowance: (direction: Direction) => number
  /** Bytes were handed to the kernel; may disconnect the connection. */
  readonly forwarded: (direction: Direction, bytes: number, connection: ProxyConnection) => void
  /** Both sockets are closed. */
  readonly closed: (connection: ProxyConnection) => void
  readonly nextRandom: () => number
}

/** Copies bytes from one socket to the other through a fault queue. */
class Flow {
  readonly direction: Direction
  readonly queue: FaultQueue
  source: Socket | undefined
  sink: Socket | undefined
  /** Bytes handed to the sink's kernel buffer. */
  forwardedBytes = 0
  /** Nothing more is written; received bytes are discarded. */
  isClosed = false
  #timer: Timer | undefined
  readonly #connection: ProxyConnection
  readonly #owner: ConnectionOwner

  constructor(direction: Direction, connection: ProxyConnection, owner: ConnectionOwner) {
    this.direction = direction
    this.queue = new FaultQueue(owner.nextRandom)
    this.#connection = connection
    this.#owner = owner
  }

  receive(bytes: Uint8Array): void {
    if (this.isClosed) return
    this.queue.push(bytes, performance.now())
    if (this.queue.isFull) this.source?.pause()
    this.pump()
  }

  receiveClose(kind: 'end' | 'reset'): void {
    if (this.isClosed) return
    this.queue.pushClose(kind, performance.now())
    this.pump()
  }

  close(): void {
    this.isClosed = true
    clearTimeout(this.#timer)
    // Keep reading: the kernel answers a close with RST while received bytes are unread.
    this.source?.resume()
  }

  /** Writes what may be written now and schedules the next call. */
  pump(): void {
    clearTimeout(this.#timer)
    while (!this.isClosed && this.sink !== undefined) {
      const nowMs = performance.now()
      const step = this.queue.next(nowMs)
      switch (step.kind) {
        case 'idle':
          return
        case 'wait':
          this.#timer = setTimeout(() => this.pump(), step.untilMs - nowMs)
          return
        case 'end':
          this.#connection.finish(this.direction)
          return
        case 'reset':
          this.#connection.disconnect('reset')
          return
        case 'write':
          if (!this.#write(this.sink, step.bytes)) return
      }
    }
  }

  /** Returns false when the next write has to wait for another event-loop turn. */
  #write(sink: Socket, bytes: Uint8Array): boolean {
    const allowed = bytes.subarray(0, this.#owner.allowance(this.direction))
    const written = Math.max(0, sink.write(allowed))
    if (written > 0) {
      this.queue.wrote(written)
      this.forwardedBytes += written
      if (!this.queue.isFull) this.source?.resume()
      this.#owner.forwarded(this.direction, written, this.#connection)
    }
    if (written < allowed.length) return false
    if (this.#connection.faults[this.direction].sliceBytes === undefined) return true
    this.#timer = setTimeout(() => this.pump(), 0)
    return false
  }
}

/** One client's connection through the proxy, from accept until both sockets are closed. */
export class ProxyConnection {
  readonly id: number
  /** The faults in force, per direction. */
  faults: Readonly<Record<Direction, DirectionFaults>> = { toClient: {}, toTarget: {} }
  readonly #toClient: Flow
  readonly #toTarget: Flow
  readonly #owner: ConnectionOwner
  /** Sockets that are open. */
  readonly #open = new Set<Socket>()
  /** Sockets that received a FIN. */
  readonly #ended = new Set<Socket>()
  /** Sockets that sent a FIN. */
  readonly #finished = new Set<Socket>()
  #linger: Timer | undefined

  constructor(id: number, client: Socket, owner: ConnectionOwner) {
    this.id = id
    this.#owner = owner
    this.#toClient = new Flow('toClient', this, owner)
    this.#toTarget = new Flow('toTarget', this, owner)
    this.#toTarget.source = client
    this.#toClient.sink = client
    this.#open.add(client)
  }

  get bytesToClient(): number {
    return this.#toClient.forwardedBytes
  }

  get bytesToTarget(): number {
    return this.#toTarget.forwardedBytes
  }

  /** Bytes read from one end and not yet written to the other. */
  get heldBytes(): number {
    return this.#toClient.queue.heldBytes + this.#toTarget.queue.heldBytes
  }

  /** The target is connected: bytes can flow. */
  join(target: Socket): void {
    this.#toClient.source = target
    this.#toTarget.sink = target
    this.#open.add(target)
    this.#toTarget.source?.resume()
    this.#toTarget.pump()
  }

  setFaults(faults: Readonly<Record<Direction, DirectionFaults>>): void {
    this.faults = faults
    for (const flow of [this.#toClient, this.#toTarget]) {
      flow.queue.setFaults(faults[flow.direction], performance.now())
      if (!flow.queue.isFull && flow.sink !== undefined) flow.source?.resume()
      flow.pump()
    }
  }

  /** Closes the connection now. `direction` applies to `half` only. */
  disconnect(kind: DisconnectKind, direction: Direction = 'toClient'): void {
    switch (kind) {
      case 'reset':
        this.#toClient.close()
        this.#toTarget.close()
        for (const socket of this.#open) socket.terminate()
        return
      case 'fin':
        this.finish('toClient')
        this.finish('toTarget')
        this.#linger = setTimeout(() => this.disconnect('reset'), FIN_LINGER_MS)
        return
      case 'half':
        this.finish(direction)
    }
  }

  /** Sends FIN in one direction and discards later bytes. */
  finish(direction: Direction): void {
    const flow = direction === 'toClient' ? this.#toClient : this.#toTarget
    flow.close()
    if (flow.sink === undefined || this.#finished.has(flow.sink)) return
    this.#finished.add(flow.sink)
    flow.sink.shutdown()
    this.#closeIfDone(flow.sink)
  }

  received(socket: Socket, bytes: Uint8Array): void {
    this.#flowFrom(socket).receive(bytes)
  }

  drained(socket: Socket): void {
    this.#flowTo(socket).pump()
  }

  peerEnded(socket: Socket): void {
    this.#ended.add(socket)
    this.#flowFrom(socket).receiveClose('end')
    this.#closeIfDone(socket)
  }

  /** The socket closed, cleanly or with an error. */
  socketClosed(socket: Socket, isError: boolean): void {
    if (!this.#open.delete(socket)) return
    this.#flowTo(socket).close()
    if (isError) this.#flowFrom(socket).receiveClose('reset')
    else if (!this.#ended.has(socket)) this.#flowFrom(socket).receiveClose('end')
    if (this.#open.size > 0) return
    clearTimeout(this.#linger)
    this.#owner.closed(this)
  }

  #flowFrom(socket: Socket): Flow {
    return socket === this.#toTarget.source ? this.#toTarget : this.#toClient
  }

  #flowTo(socket: Socket): Flow {
    return socket === this.#toTarget.source ? this.#toClient : this.#toTarget
  }

  /** Closes a socket that has sent and received FIN. */
  #closeIfDone(socket: Socket): void {
    if (this.#ended.has(socket) && this.#finished.has(socket)) socket.end()
  }
}
