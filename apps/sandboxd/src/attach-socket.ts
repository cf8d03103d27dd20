import type { ServerWebSocket } from 'bun'
import { encode, ERRORS, type LinkRights, type SandwireError, type StartParameters } from '@sandwire/protocol'
import type { SessionHost } from './sessions/session-host.ts'
import { sendFrame } from './sessions/socket-link.ts'

/** What an accepted upgrade carries until its socket opens. */
export type SocketData =
  /** A connection to a session. */
  | {
      readonly kind: 'attach'
      readonly link: number
      readonly host: SessionHost
      readonly rights: LinkRights
      readonly start: StartParameters
      /** Plain sockets only: when anything was last heard, and whether a ping is out. */
      liveness: { heardMs: number; timer: ReturnType<typeof setInterval> | undefined }
    }
  /** A refusal that the client can read: browsers cannot see a refused upgrade. */
  | { readonly kind: 'refuse'; readonly error: SandwireError }

/** How often a plain client is asked whether it is there. */
const PLAIN_PING_MS = 30_000
/** A plain client that owes no reading and answers no ping for this long is gone. */
const PLAIN_SILENCE_MS = 120_000

/** Handlers of the attach route. */
export function createSocketHandlers(now: () => number): {
  open(socket: ServerWebSocket<SocketData>): void
  message(socket: ServerWebSocket<SocketData>, data: string | Buffer): void
  drain(socket: ServerWebSocket<SocketData>): void
  pong(socket: ServerWebSocket<SocketData>): void
  close(socket: ServerWebSocket<SocketData>): void
} {
  const heard = (data: SocketData): void => {
    if (data.kind === 'attach') data.liveness.heardMs = now()
  }
  return {
    open(socket) {
      const { data } = socket
      if (data.kind === 'refuse') {
        const { code, message } = data.error
        socket.sendText(encode({ type: 'error', code, message, fatal: true }))
        socket.close(ERRORS[code].close, code)
        return
      }
      heard(data)
      if (data.rights.dialect === 'plain') data.liveness.timer = watchPlain(socket, data, now)
      data.host.connected(
        data.link,
        {
          send: (frame) => sendFrame(socket, frame),
          close: (code, reason) => socket.close(code, reason),
          terminate: () => socket.terminate(),
        },
        data.rights,
        data.start,
      )
    },
    message(socket, message) {
      heard(socket.data)
      if (socket.data.kind === 'attach') socket.data.host.received(socket.data.link, message)
    },
    drain(socket) {
      heard(socket.data)
      if (socket.data.kind === 'attach') socket.data.host.drained(socket.data.link)
    },
    pong(socket) {
      heard(socket.data)
    },
    close(socket) {
      if (socket.data.kind !== 'attach') return
      clearInterval(socket.data.liveness.timer)
      socket.data.host.disconnected(socket.data.link)
    },
  }
}

/**
 * Plain clients send no heartbeat, so they are pinged. One that has output waiting is slow, not dead, and is left to
 * TCP; one that has none and stays silent is gone.
 */
function watchPlain(
  socket: ServerWebSocket<SocketData>,
  data: Extract<SocketData, { kind: 'attach' }>,
  now: () => number,
): ReturnType<typeof setInterval> {
  return setInterval(() => {
    if (socket.getBufferedAmount() > 0) data.liveness.heardMs = now()
    else if (now() > data.liveness.heardMs + PLAIN_SILENCE_MS) socket.terminate()
    else socket.ping()
  }, PLAIN_PING_MS)
}
