import type { StopReason } from '@sandwire/protocol'

/** Time a supervisor has to answer; it does nothing that takes long, so only a loaded machine needs this much. */
const ANSWER_MS = 2_000

/** What can be asked of a supervisor over its control socket. */
export type Order = 'GET /status' | 'POST /claim' | `POST /stop?reason=${StopReason}`

/** Asks a supervisor; false when it does not answer, or not well. */
export async function askSupervisor(controlSocket: string, order: Order): Promise<boolean> {
  const [method = 'GET', path = '/'] = order.split(' ')
  try {
    const response = await fetch(`http://supervisor${path}`, {
      unix: controlSocket,
      method,
      signal: AbortSignal.timeout(ANSWER_MS),
      // A connection kept for later would outlive the supervisor behind it.
      headers: { connection: 'close' },
    })
    return response.ok
  } catch {
    // It is ending, or it is gone: its process tells which.
    return false
  }
}
