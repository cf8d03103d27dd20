import { readFileSync } from 'node:fs'

/** Unix sockets that count nothing: their queues are empty in most programs. */
const FREE_UNIX_SOCKETS = 256
/** The default of `wmem_default`, which the system call filter makes the most that a socket can queue. */
const DEFAULT_QUEUE_BYTES = 212_992
/** The kernel stores a byte in up to this many. */
const OVERHEAD = 2

function readRows(file: string): readonly (readonly string[])[] {
  try {
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n').slice(1)
    return lines.map((line) => line.trim().split(/\s+/))
  } catch {
    // The process has ended, or this kernel does not have the protocol.
    return []
  }
}

function readQueueBytes(): number {
  try {
    return Number(readFileSync('/proc/sys/net/core/wmem_default', 'utf8'))
  } catch {
    // A read-only view of another kernel.
    return DEFAULT_QUEUE_BYTES
  }
}

/** What a number of Unix sockets may queue. The kernel does not tell what they do, nor can all be found: one may be queued in another. */
export function unixSocketBytes(count: number, queueBytes: number): number {
  return Math.max(0, count - FREE_UNIX_SOCKETS) * queueBytes
}

/** Bytes in both queues of a row of `/proc/net/tcp` or `udp`: hexadecimal, as `tx:rx`. */
export function queuedBytes(row: readonly string[]): number {
  const [sent = '', received = ''] = (row[4] ?? '').split(':')
  return (Number.parseInt(sent, 16) || 0) + (Number.parseInt(received, 16) || 0)
}

/** Memory in the queues of netlink sockets in the network namespace of a process. No cgroup counts it. */
export function netlinkBytes(pid: number): number {
  const rows = readRows(`/proc/${pid}/net/netlink`)
  return rows.reduce((sum, row) => sum + Number(row[4] ?? 0) + Number(row[5] ?? 0), 0)
}

/** Number of sockets of all kinds in the network namespace of a process. Much cheaper than listing them. */
export function countSockets(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/net/sockstat`, 'utf8')
    return Number(/^sockets: used ([0-9]+)$/m.exec(text)?.[1] ?? 0)
  } catch {
    // The process has ended.
    return 0
  }
}

/** An upper bound of the memory that sockets in the network namespace of a process queue, including sockets that other processes hold. */
export function socketBytes(pid: number): number {
  const folder = `/proc/${pid}/net`
  const internet = ['tcp', 'tcp6', 'udp', 'udp6'].flatMap((name) => readRows(`${folder}/${name}`))
  const queued = internet.reduce((sum, row) => sum + queuedBytes(row), netlinkBytes(pid))
  return queued * OVERHEAD + unixSocketBytes(readRows(`${folder}/unix`).length, readQueueBytes())
}
