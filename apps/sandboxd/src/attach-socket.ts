import type { ServerWebSocket } from 'bun'
import {
  encode,
  ERRORS,
  FramePacker,
  type ConnectionId,
  type ConnectionRights,
  formatRetryMessage,
  type SandwireError,
  type StartParameters,
} from '@sandwire/protocol'
import type { EventSocket } from './agents/event-socket.ts'
import type { Log } from './log.ts'
import { sendFrame, type SessionConnection } from './sessions/connections.ts'
import type { SessionRunner } from './sessions/session-runner.ts'
import { SlicedQueue } from './sliced-queue.ts'

/** Translates between a session and a client that speaks another protocol. */
export interface ConnectionAdapter {
  /** The connection as the session sees it, over the client's own. */
  wrap(client: SessionConnection): SessionConnection
  /** The session has the connection. */
  opened(): void
  received(message: string | Uint8Array): void
  /** The client's connection is closed. */
  closed(): void
}

/** The last message to a client that is refused, and the close frame after it. */
export type RefuseSocket = (error: SandwireError) => {
  readonly message: string
  readonly code: number
  readonly reason: string
}

/** What an accepted upgrade carries until its socket opens. */
export type SocketData =
  /** A connection to a session. */
  | {
      readonly kind: 'attach'
      readonly connection: ConnectionId
      readonly runner: SessionRunner
      readonly rights: ConnectionRights
      readonly start: StartParameters
      readonly adapter: ConnectionAdapter | undefined
      /** The client acknowledges output, waits for input credit and sends heartbeats; any other is paced by TCP and pinged. */
      readonly hasWindow: boolean
      /** The request that became this connection, for the log. */
      readonly requestId: string
      /** Only without `hasWindow`: when anything was last received, and the timer that pings. */
      liveness: { receivedMs: number; timer: ReturnType<typeof setInterval> | undefined }
      /** Interval of these pings. */
      readonly pingMs: number
    }
  /** A viewer of a run's events. */
  | {
      readonly kind: 'events'
      readonly socket: EventSocket
      readonly opened: () => void
      readonly closed: () => void
    }
  /** A refusal that the client can read: browsers cannot see the response to a refused upgrade. */
  | { readonly kind: 'refuse'; readonly error: SandwireError; readonly refuse: RefuseSocket | undefined }

/** Interval of pings to a client without heartbeat. */
export const PING_MS = 30_000
/** Interval while input is paused, when a close frame cannot be read: the kernel of a closed peer answers with a reset. */
const PAUSED_PING_MS = 1_000
/** A client that has no output waiting and answers none of this many pings is gone. */
const MAX_UNANSWERED_PINGS = 4

/** Input not yet taken by the process at which a client without input credit is paused through TCP. */
const INPUT_HIGH_BYTES = 1024 * 1024
/** Input left at which it is resumed. */
const INPUT_LOW_BYTES = 256 * 1024

/** WebSocket handlers of the attach endpoints. */
export function createSocketHandlers(
  now: () => number,
  log: Log,
  countDisconnect: (code: number) => void,
): {
  open(socket: ServerWebSocket<SocketData>): void
  message(socket: ServerWebSocket<SocketData>, data: string | Buffer): void
  drain(socket: ServerWebSocket<SocketData>): void
  pong(socket: ServerWebSocket<SocketData>): void
  close(socket: ServerWebSocket<SocketData>, code: number): void
} {
  const frames = new FramePacker()
  // A network or proxy that fails closes thousands of connections in one turn.
  const closed = new SlicedQueue(now)
  const touch = (data: SocketData): void => {
    if (data.kind === 'attach') data.liveness.receivedMs = now()
  }
  return {
    open(socket) {
      const { data } = socket
      if (data.kind === 'refuse') {
        const { message, code, reason } = (data.refuse ?? refuse)(data.error)
        socket.sendText(message)
        socket.close(code, reason)
        return
      }
      if (data.kind === 'events') {
        data.opened()
        data.socket.opened(socket)
        return
      }
      touch(data)
      log.info('connected', logFieldsOf(data))
      if (!data.hasWindow) data.liveness.timer = startPings(socket, data, now)
      const connection: SessionConnection = {
        requestId: data.requestId,
        send: (frame) => sendFrame(socket, frame),
        sendOutput: (stream, bytes) => sendFrame(socket, frames.pack(stream, bytes)),
        close: (code, reason) => {
          // The client's close frame follows what it has already sent.
          socket.resume()
          socket.close(code, reason)
        },
        terminate: () => socket.terminate(),
        inputSettled: () => {
          if (!socket.isPaused || data.runner.unsettledInput(data.connection) > INPUT_LOW_BYTES) return
          clearInterval(data.liveness.timer)
          data.liveness.timer = startPings(socket, data, now)
          touch(data)
          socket.resume()
        },
      }
      data.runner.connected(
        data.connection,
        data.adapter?.wrap(connection) ?? connection,
        data.rights,
        data.start,
      )
      data.adapter?.opened()
    },
    message(socket, message) {
      touch(socket.data)
      if (socket.data.kind === 'events') socket.data.socket.received(message)
      if (socket.data.kind !== 'attach') return
      const { runner, connection, hasWindow, liveness, adapter } = socket.data
      if (adapter === undefined) runner.received(connection, message)
      else adapter.received(message)
      if (hasWindow || socket.isPaused) return
      if (runner.unsettledInput(connection) <= INPUT_HIGH_BYTES) return
      socket.pause()
      clearInterval(liveness.timer)
      liveness.timer = setInterval(() => socket.ping(), PAUSED_PING_MS)
    },
    drain(socket) {
      touch(socket.data)
      if (socket.data.kind === 'attach') socket.data.runner.drained(socket.data.connection)
      if (socket.data.kind === 'events') socket.data.socket.drained()
    },
    pong(socket) {
      touch(socket.data)
    },
    close(socket, code) {
      const { data } = socket
      if (data.kind === 'events') {
        data.closed()
        data.socket.closed()
      }
      if (data.kind !== 'attach') return
      countDisconnect(code)
      clearInterval(data.liveness.timer)
      closed.push(() => {
        log.info('disconnected', logFieldsOf(data))
        data.adapter?.closed()
        data.runner.disconnected(data.connection)
      })
    },
  }
}

function refuse(error: SandwireError): ReturnType<RefuseSocket> {
  const { code } = error
  const message = encode({ type: 'error', code, message: formatRetryMessage(error), fatal: true })
  return { message, code: ERRORS[code].close, reason: code }
}

function logFieldsOf(data: Extract<SocketData, { kind: 'attach' }>): { session: string; request_id: string } {
  return { session: data.runner.session.id, request_id: data.requestId }
}

/**
 * Pings a client that sends no heartbeat. One that has output waiting is slow, not dead, and is left to TCP; one that has
 * none and stays silent is disconnected.
 */
function startPings(
  socket: ServerWebSocket<SocketData>,
  data: Extract<SocketData, { kind: 'attach' }>,
  now: () => number,
): ReturnType<typeof setInterval> {
  return setInterval(() => {
    if (socket.getBufferedAmount() > 0) data.liveness.receivedMs = now()
    else if (now() > data.liveness.receivedMs + MAX_UNANSWERED_PINGS * data.pingMs) socket.terminate()
    else socket.ping()
  }, data.pingMs)
}
