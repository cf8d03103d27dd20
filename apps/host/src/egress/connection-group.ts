/** Connections of one sandbox at a time. */
const MAX_CONNECTIONS = 256
/** Bytes that all connections of one sandbox may buffer. A connection that stalls buffers at most one read, up to 512 KiB. */
const MAX_HELD_BYTES = 16 * 1024 * 1024

/** A connection, as its group uses it. */
export interface GroupedConnection {
  /** Bytes that it buffers for a peer that does not read. */
  readonly heldBytes: number
  terminate(): void
}

/** The connections of one sandbox, which share its limits. */
export class ConnectionGroup {
  readonly #maxHeldBytes: number
  readonly #onFull: () => void
  readonly #connections = new Set<GroupedConnection>()
  #heldBytes = 0

  /** `onFull`: a connection is closed, because too many bytes are buffered. */
  constructor(onFull: () => void, maxHeldBytes = MAX_HELD_BYTES) {
    this.#onFull = onFull
    this.#maxHeldBytes = maxHeldBytes
  }

  /** Bytes that all connections buffer. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  get isEmpty(): boolean {
    return this.#connections.size === 0
  }

  /** False when the group has too many connections; the connection is added all the same, until it is closed. */
  add(connection: GroupedConnection): boolean {
    this.#connections.add(connection)
    return this.#connections.size <= MAX_CONNECTIONS
  }

  delete(connection: GroupedConnection): void {
    this.#connections.delete(connection)
  }

  /** A connection buffers more bytes, or fewer. Above the limit, the connection that buffers the most is closed. */
  changeHeldBytes(delta: number): void {
    this.#heldBytes += delta
    if (delta <= 0 || this.#heldBytes <= this.#maxHeldBytes) return
    let largest: GroupedConnection | undefined
    for (const each of this.#connections) if (each.heldBytes > (largest?.heldBytes ?? 0)) largest = each
    this.#onFull()
    largest?.terminate()
  }
}
