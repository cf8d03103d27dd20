import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long a peer may take to answer the close frame of a session that has ended. */
const MAX_WAIT_MS = 1_000
const POLL_MS = 5

/** States of sockets that were closed on this side only: FIN_WAIT1, FIN_WAIT2. */
const CLOSING_STATES = new Set(['04', '05'])

/**
 * Resolves when the peers of all closed connections to `port` have closed them too. Bun reports a WebSocket as closed when
 * its close frame is queued, but where the network ends with sandboxd, as in a container, that frame can still be lost.
 */
export async function awaitClosingConnections(port: number): Promise<void> {
  const deadlineMs = performance.now() + MAX_WAIT_MS
  while (performance.now() < deadlineMs && (await hasClosingConnections(port))) await sleep(POLL_MS)
}

async function hasClosingConnections(port: number): Promise<boolean> {
  const tables = await Promise.all(['tcp', 'tcp6'].map(readTable))
  return tables.some((table) => parseLocalStates(table, port).some((state) => CLOSING_STATES.has(state)))
}

async function readTable(name: string): Promise<string> {
  try {
    return await readFile(`/proc/self/net/${name}`, 'utf8')
  } catch {
    // Without IPv6 there is no tcp6, and without /proc nothing to wait for.
    return ''
  }
}

/** Hexadecimal states of the sockets with this local port, from a table such as `/proc/net/tcp`. */
function parseLocalStates(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return table.split('\n').flatMap((row) => {
    const [, local, , state] = row.trim().split(/\s+/)
    return local?.endsWith(suffix) === true && state !== undefined ? [state] : []
  })
}
