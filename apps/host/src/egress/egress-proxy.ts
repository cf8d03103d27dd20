import { chmodSync, rmSync } from 'node:fs'
import { type NetworkSpec } from '@sandwire/internal-api'
import { type BlockReason, createPolicy, formatHost, type Target } from '@sandwire/network-policy'
import { TokenBucket } from '@sandwire/protocol'
import type { Socket } from 'bun'
import { LOG_BURST, LOG_PER_SECOND } from './egress-messages.ts'
import { type BlockedHost, BlockedHosts } from './blocked-hosts.ts'
import { ConnectionGroup } from './connection-group.ts'
import { type ConnectionOwner, ProxyConnection } from './proxy-connection.ts'
import { type Dial, dialAddress, connectToTarget, type Resolve, resolveName } from './connect-target.ts'
import { listOwnAddresses } from './own-addresses.ts'

/** Time to receive the head of a request. */
const HEAD_TIMEOUT_MS = 10_000
/** Time after which an idle connection is closed. */
const MAX_IDLE_MS = 60 * 60_000
const SWEEP_MS = 60_000

/** Log of blocked targets, which the user can read. */
export interface EgressLog {
  warn(event: 'egress_blocked', fields: { host: string; port: number; reason: BlockReason }): void
}

export interface EgressProxyOptions {
  /** Where to listen. Connections count as the sandbox's, so its folder must be private. */
  readonly socketPath: string
  /** Absent: control sends the requests of all containers, and has checked hosts and ports. */
  readonly network?: NetworkSpec
  readonly log: EgressLog
  readonly resolve?: Resolve
  readonly dial?: Dial
  readonly ownAddresses?: () => readonly string[]
  readonly headTimeoutMs?: number
  /** Bytes that all connections of a sandbox may buffer. */
  readonly maxHeldBytes?: number
}

/** Totals since the proxy was opened. */
export interface EgressCounts {
  readonly connections: number
  readonly blocked: number
  /** Bytes from the sandbox. */
  readonly sentBytes: number
  readonly receivedBytes: number
  /** Bytes that are buffered now, because a peer does not read. */
  readonly heldBytes: number
  /** Connections that were closed, because too many bytes were buffered. */
  readonly closedFull: number
}

type ClientSocket = Socket<{ connection: ProxyConnection | undefined }>

/** The egress proxy of one sandbox, or of all containers: an HTTP proxy on a unix socket. */
export class EgressProxy implements AsyncDisposable {
  readonly #socketPath: string
  readonly #log: EgressLog
  readonly #maxHeldBytes: number | undefined
  readonly #owner: ConnectionOwner
  readonly #listener: { stop(closeActive: boolean): void }
  readonly #connections = new Set<ProxyConnection>()
  /** By sandbox; undefined is the only one. */
  readonly #groups = new Map<string | undefined, ConnectionGroup>()
  readonly #blockedHosts = new BlockedHosts()
  readonly #logBucket = new TokenBucket(LOG_PER_SECOND, LOG_BURST, performance.now())
  readonly #counts = { connections: 0, blocked: 0, sentBytes: 0, receivedBytes: 0, closedFull: 0 }
  readonly #sweep: Timer

  constructor(options: EgressProxyOptions) {
    this.#socketPath = options.socketPath
    this.#log = options.log
    this.#maxHeldBytes = options.maxHeldBytes
    const connectOptions = {
      checkPolicy: options.network === undefined ? () => undefined : createPolicy(options.network),
      resolve: options.resolve ?? resolveName,
      dial: options.dial ?? dialAddress,
      ownAddresses: options.ownAddresses ?? listOwnAddresses,
    }
    this.#owner = {
      headTimeoutMs: options.headTimeoutMs ?? HEAD_TIMEOUT_MS,
      source: options.network === undefined ? 'control' : 'sandbox',
      groupOf: (sandbox) => this.#groupOf(sandbox),
      connect: (target, signal) => connectToTarget(target, connectOptions, signal),
      blocked: (target, reason) => this.#blocked(target, reason),
      moved: (direction, bytes) => {
        this.#counts[direction === 'sent' ? 'sentBytes' : 'receivedBytes'] += bytes
      },
      closed: (connection) => this.#closed(connection),
    }
    rmSync(this.#socketPath, { force: true })
    this.#listener = this.#listen()
    // The sandbox may run as another user; the folder's mode restricts access.
    chmodSync(this.#socketPath, 0o666)
    this.#sweep = setInterval(() => this.#closeIdle(), SWEEP_MS)
    this.#sweep.unref()
  }

  /** Recently blocked targets, latest first. */
  blocked(): readonly BlockedHost[] {
    return this.#blockedHosts.list()
  }

  counts(): EgressCounts {
    const heldBytes = [...this.#groups.values()].reduce((sum, group) => sum + group.heldBytes, 0)
    return { ...this.#counts, heldBytes }
  }

  /** Closes every connection and removes the socket. */
  async close(): Promise<void> {
    clearInterval(this.#sweep)
    this.#listener.stop(true)
    for (const connection of this.#connections) connection.terminate()
    rmSync(this.#socketPath, { force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #listen(): { stop(closeActive: boolean): void } {
    return Bun.listen<ClientSocket['data']>({
      unix: this.#socketPath,
      allowHalfOpen: true,
      socket: {
        open: (socket) => this.#accept(socket),
        data: (socket, bytes) => socket.data.connection?.received(bytes),
        drain: (socket) => socket.data.connection?.drained(),
        end: (socket) => socket.data.connection?.ended(),
        close: (socket) => socket.data.connection?.clientClosed(),
        error: (socket) => socket.terminate(),
      },
    })
  }

  #accept(socket: ClientSocket): void {
    const connection = new ProxyConnection(socket, this.#owner)
    socket.data = { connection }
    this.#counts.connections++
    this.#connections.add(connection)
    if (this.#owner.source === 'sandbox') connection.join(this.#groupOf(undefined))
  }

  #groupOf(sandbox: string | undefined): ConnectionGroup {
    const group =
      this.#groups.get(sandbox) ?? new ConnectionGroup(() => this.#counts.closedFull++, this.#maxHeldBytes)
    this.#groups.set(sandbox, group)
    return group
  }

  #closed(connection: ProxyConnection): void {
    this.#connections.delete(connection)
    connection.leave()
    for (const [sandbox, group] of this.#groups) if (group.isEmpty) this.#groups.delete(sandbox)
  }

  #blocked(target: Target, reason: BlockReason): void {
    this.#counts.blocked++
    const { host, port, count } = this.#blockedHosts.add(formatHost(target.host), target.port, reason)
    if (count === 1 && this.#logBucket.take(1, performance.now()))
      this.#log.warn('egress_blocked', { host, port, reason })
  }

  #closeIdle(): void {
    const before = performance.now() - MAX_IDLE_MS
    for (const connection of this.#connections) if (connection.activeMs < before) connection.terminate()
  }
}

/** Opens an egress proxy. Throws `bad_request` for an invalid network policy. */
export async function openEgressProxy(options: EgressProxyOptions): Promise<EgressProxy> {
  return new EgressProxy(options)
}
