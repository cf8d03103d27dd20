import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { readDescendants } from '@sandwire/testing'

const LISTEN = '0A'

/** Inodes of the sockets a process has open. */
function socketsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? []
      } catch {
        // Closed meanwhile.
        return []
      }
    })
  } catch {
    // The process ended meanwhile.
    return []
  }
}

/** `ADDRESS:PORT` of every TCP port that a process or a descendant listens on, in the kernel's format. */
export function listListening(pid: number): string[] {
  const pids = [pid, ...readDescendants(pid).map((each) => each.pid)]
  const inodes = new Set(pids.flatMap(socketsOf))
  const rows = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) =>
    readFileSync(file, 'utf8').split('\n').slice(1),
  )
  return rows.flatMap((row) => {
    const fields = row.trim().split(/\s+/)
    const [address, port] = (fields[1] ?? '').split(':')
    const isOurs = fields[3] === LISTEN && inodes.has(fields[9] ?? '')
    return isOurs ? [`${address}:${Number.parseInt(port ?? '', 16)}`] : []
  })
}
