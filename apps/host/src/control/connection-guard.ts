import { readFileSync } from 'node:fs'
import type { Log } from '../log.ts'
import { type AcceptedSocket, AcceptedSockets } from './accepted-sockets.ts'
import {
  type ConnectionLimits,
  type ConnectionSettings,
  findExcess,
  planConnectionLimits,
} from './connection-limits.ts'
import { raiseDescriptorLimit } from './descriptor-limit.ts'

/** Between two looks at the number of sockets, which take microseconds. */
const TICK_MS = 100
/** The same where a burst of a few hundred connections could use up the descriptors. */
const SHORT_TICK_MS = 20
/** With fewer connections, a server for others is soon full. */
const FEW_CONNECTIONS = 4_096
/** Between two looks at all connections while the total is not reached. */
const SCAN_MS = 1_000
/** At most this part of the time goes to looking at connections: one in four. */
const IDLE_FACTOR = 3
/** Part of the total that is kept when it was exceeded. */
const KEPT_PART = 0.9
/** Between two log lines. */
const LOG_MS = 10_000

/** Number of TCP sockets of this network namespace. */
function countTcpSockets(): number {
  const numberIn = (file: string): number => {
    try {
      return Number(/^TCP6?: inuse (\d+)/m.exec(readFileSync(file, 'latin1'))?.[1] ?? 0)
    } catch {
      // No IPv6.
      return 0
    }
  }
  return numberIn('/proc/net/sockstat') + numberIn('/proc/net/sockstat6')
}

export interface ConnectionGuardOptions {
  readonly sockets: Pick<AcceptedSockets, 'list' | 'close' | 'hold'>
  readonly limits: ConnectionLimits
  readonly countSockets: () => number
  readonly log: Log
  readonly nowMs: () => number
}

/**
 * Keeps the connections of workerd below its limits: it exits when it cannot open another descriptor. Looks at them only when
 * the machine has enough sockets for a limit to be reached.
 */
export class ConnectionGuard {
  readonly #options: ConnectionGuardOptions
  /** Sockets of the machine, and connections among them, when last looked at. */
  #last = { sockets: 0, connections: 0 }
  #nextScanMs = 0
  #nextLogMs = 0
  #closed = 0
  #isHolding = false
  #isPermitted = true

  constructor(options: ConnectionGuardOptions) {
    this.#options = options
  }

  /** Checks until disposed. */
  start(): Disposable {
    const isShort = this.#options.limits.total < FEW_CONNECTIONS
    const timer = setInterval(() => this.tick(), isShort ? SHORT_TICK_MS : TICK_MS)
    timer.unref()
    return { [Symbol.dispose]: () => clearInterval(timer) }
  }

  tick(): void {
    const { limits, sockets, countSockets, nowMs, log } = this.#options
    if (!this.#isPermitted) return
    const count = countSockets()
    // All new sockets may be connections; those that were something else before still are.
    const possible = this.#last.connections + Math.max(0, count - this.#last.sockets)
    if (possible <= limits.perAddress && !this.#isHolding) return
    const isOver = possible > limits.total
    if (nowMs() < this.#nextScanMs && !(isOver && !this.#isHolding)) return
    if (isOver && !this.#isHolding) this.#hold(true)
    const startedMs = nowMs()
    const found = sockets.list()
    if (found === undefined) return this.#giveUp()
    this.#last = { sockets: count, connections: found.length }
    const closed = this.#closeExcess(found)
    if (this.#isHolding && found.length - closed <= limits.total) this.#hold(false)
    const endedMs = nowMs()
    const pauseMs = Math.max(TICK_MS, IDLE_FACTOR * (endedMs - startedMs))
    this.#nextScanMs = endedMs + (closed > 0 || this.#isHolding ? pauseMs : Math.max(SCAN_MS, pauseMs))
    this.#closed += closed
    if (this.#closed === 0 || endedMs < this.#nextLogMs) return
    log.warn('connections_closed', { connections: found.length, closed: this.#closed })
    this.#closed = 0
    this.#nextLogMs = endedMs + LOG_MS
  }

  #closeExcess(found: readonly AcceptedSocket[]): number {
    const { limits, sockets } = this.#options
    // Room for new connections, which would otherwise wait for the next look.
    const total = found.length > limits.total ? Math.ceil(limits.total * KEPT_PART) : limits.total
    const networks = Map.groupBy(found, ({ network }) => network)
    const counts = new Map([...networks].map(([network, { length }]) => [network, length]))
    let closed = 0
    for (const [network, excess] of findExcess(counts, { ...limits, total })) {
      sockets.close(networks.get(network) ?? [], excess)
      closed += excess
    }
    return closed
  }

  #hold(isHeld: boolean): void {
    this.#isHolding = isHeld
    this.#options.sockets.hold(isHeld)
  }

  #giveUp(): void {
    this.#isPermitted = false
    this.#options.log.warn('connections_not_limited')
  }
}

/** Files that a process may open when its limit is not known: what POSIX systems had for decades. */
const UNKNOWN_DESCRIPTORS = 1_024
/** The limits of a running workerd. */
export interface WatchedConnections extends Disposable {
  /** What the operator should know about the limits, and do. */
  readonly notice?: string
}

/** Raises the descriptor limit of workerd and limits its connections until disposed. */
export function watchConnections({
  pid,
  port,
  settings,
  log,
  nowMs,
}: {
  readonly pid: number
  readonly port: number
  readonly settings: ConnectionSettings
  readonly log: Log
  readonly nowMs: () => number
}): WatchedConnections {
  const files = raiseDescriptorLimit(pid) ?? UNKNOWN_DESCRIPTORS
  const limits = planConnectionLimits(files, settings)
  const sockets = new AcceptedSockets(pid, port)
  log.info('connection_limits', { connections: limits.total, per_address: limits.perAddress, files })
  const guard = new ConnectionGuard({ sockets, limits, countSockets: countTcpSockets, log, nowMs })
  const isPermitted = sockets.list() !== undefined
  const notice = describeLimits(limits, files, isPermitted)
  return { ...(notice !== undefined && { notice }), [Symbol.dispose]: guard.start()[Symbol.dispose] }
}

function describeLimits(
  { total }: ConnectionLimits,
  files: number,
  isPermitted: boolean,
): string | undefined {
  if (!isPermitted)
    return 'connections are not limited, because the kernel hides the sockets of control; limit them in a proxy'
  if (total >= FEW_CONNECTIONS) return undefined
  return `at most ${total} connections, because control may open ${files} files; raise that with ulimit -n 65536 or LimitNOFILE=65536`
}
