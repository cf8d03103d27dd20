import type { ServerWebSocket } from 'bun'
import {
  encode,
  encodePty,
  envelopeEndOf,
  ERRORS,
  FramePacker,
  knowsNoWindow,
  type LinkRights,
  messageWithWait,
  type SandwireError,
  type StartParameters,
} from '@sandwire/protocol'
import type { Envelope } from './envelopes/envelope.ts'
import type { Log } from './log.ts'
import type { SessionHost } from './sessions/session-host.ts'
import type { HostLink } from './sessions/session-links.ts'
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
      /** Translates for a client that speaks something else. */
      readonly envelope?: Envelope
      /** The request that became this connection, for the log. */
      readonly requestId: string
      /** Sockets without heartbeat only: when anything was last heard, and the timer that looks at it. */
      liveness: { heardMs: number; timer: ReturnType<typeof setInterval> | undefined }
    }
  /** A refusal that the client can read: browsers cannot see a refused upgrade. */
  | { readonly kind: 'refuse'; readonly error: SandwireError; readonly isEnvelope?: boolean }

/** How often a plain client is asked whether it is there. */
const PLAIN_PING_MS = 30_000
/** How often one that is held back is pinged, since its goodbye cannot be read: the kernel of one that is gone answers with a reset. */
const HELD_PING_MS = 1_000
/** A plain client that owes no reading and answers no ping for this long is gone. */
const PLAIN_SILENCE_MS = 120_000

/** Input a process has not taken at which a plain client, who knows no credit, is held back by TCP. */
const PLAIN_INPUT_HIGH_BYTES = 1024 * 1024
/** Input left at which it may go on. */
const PLAIN_INPUT_LOW_BYTES = 256 * 1024

/** Handlers of the attach route. */
export function createSocketHandlers(
  now: () => number,
  log: Log,
): {
  open(socket: ServerWebSocket<SocketData>): void
  message(socket: ServerWebSocket<SocketData>, data: string | Buffer): void
  drain(socket: ServerWebSocket<SocketData>): void
  pong(socket: ServerWebSocket<SocketData>): void
  close(socket: ServerWebSocket<SocketData>): void
} {
  const frames = new FramePacker()
  const heard = (data: SocketData): void => {
    if (data.kind === 'attach') data.liveness.heardMs = now()
  }
  return {
    open(socket) {
      const { data } = socket
      if (data.kind === 'refuse') {
        refuse(socket, data)
        return
      }
      heard(data)
      log.info('connected', nameOf(data))
      if (knowsNoWindow(data.rights)) data.liveness.timer = watchPlain(socket, data, now)
      const link: HostLink = {
        requestId: data.requestId,
        send: (frame) => sendFrame(socket, frame),
        sendOutput: (stream, bytes) => sendFrame(socket, frames.pack(stream, bytes)),
        close: (code, reason) => {
          // The answer to a close frame is behind what the client has sent before.
          socket.resume()
          socket.close(code, reason)
        },
        terminate: () => socket.terminate(),
        inputSettled: () => {
          if (!socket.isPaused || data.host.unsettledInput(data.link) > PLAIN_INPUT_LOW_BYTES) return
          clearInterval(data.liveness.timer)
          data.liveness.timer = watchPlain(socket, data, now)
          heard(data)
          socket.resume()
        },
      }
      data.host.connected(data.link, data.envelope?.over(link) ?? link, data.rights, data.start)
      data.envelope?.opened()
    },
    message(socket, message) {
      heard(socket.data)
      if (socket.data.kind !== 'attach') return
      const { host, link, rights, liveness, envelope } = socket.data
      if (envelope === undefined) host.received(link, message)
      else envelope.heard(message)
      if (!knowsNoWindow(rights) || socket.isPaused) return
      if (host.unsettledInput(link) <= PLAIN_INPUT_HIGH_BYTES) return
      socket.pause()
      clearInterval(liveness.timer)
      liveness.timer = setInterval(() => socket.ping(), HELD_PING_MS)
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
      log.info('disconnected', nameOf(socket.data))
      clearInterval(socket.data.liveness.timer)
      socket.data.envelope?.left()
      socket.data.host.disconnected(socket.data.link)
    },
  }
}

/** Says why, and closes. */
function refuse(
  socket: ServerWebSocket<SocketData>,
  { error, isEnvelope = false }: Extract<SocketData, { kind: 'refuse' }>,
): void {
  if (isEnvelope) {
    const { told, code, reason } = envelopeEndOf(error)
    socket.sendText(encodePty(told))
    socket.close(code, reason)
    return
  }
  const { code } = error
  socket.sendText(encode({ type: 'error', code, message: messageWithWait(error), fatal: true }))
  socket.close(ERRORS[code].close, code)
}

function nameOf(data: Extract<SocketData, { kind: 'attach' }>): { session: string; request_id: string } {
  return { session: data.host.session.id, request_id: data.requestId }
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
