import { decodeClient, decodePlainClient, type WireMessage } from '../codec.ts'
import type { OutputStream } from '../data-frame.ts'
import { ERRORS } from '../errors.ts'
import { BULK_BYTES, MAX_MESSAGE_BYTES } from '../limits.ts'
import type { OutputLog } from '../output-log.ts'
import type { ResizeLog } from '../resize-log.ts'
import { type Attachment, knowsNoWindow } from './attachment.ts'
import { handleControl } from './control-messages.ts'
import { dropConnection, refuseConnection } from './teardown.ts'
import type { ConnectionId, Refusal, ServerEffect } from './effects.ts'
import { beginEnding } from './ending.ts'
import { sendExit } from './exit-message.ts'
import { handleHello, admitPlain, checkConnection, startProcess, type StartParameters } from './handshake.ts'
import type { ConnectionRights } from './connection-table.ts'
import type { Snapshot } from './output-pump.ts'
import type { AttachmentList } from './attachment-list.ts'
import { revoke, type AttachmentFilter } from './revocation.ts'
import { expire, nextExpiryMs, endSession } from './timers.ts'
import type { ProcessExit, SessionState } from './session-lifecycle.ts'
import type { SessionOptions } from './session-options.ts'
import { createParts, type SessionParts } from './session-parts.ts'

/**
 * A process, its output log and its attachments, without any I/O: every method takes the time and returns
 * what is to be done. The process outlives connections; each attachment outlives its own.
 */
export class ServerSession {
  readonly #parts: SessionParts

  constructor(options: SessionOptions, nowMs: number) {
    this.#parts = createParts(options, nowMs)
  }

  get id(): string {
    return this.#parts.options.id
  }

  get options(): SessionOptions {
    return this.#parts.options
  }

  get state(): SessionState {
    return this.#parts.lifecycle.state
  }

  get log(): OutputLog {
    return this.#parts.log
  }

  get resizes(): ResizeLog {
    return this.#parts.resizes
  }

  get attachments(): AttachmentList {
    return this.#parts.attachments
  }

  get isPaused(): boolean {
    return this.#parts.flow.isPaused
  }

  get createdMs(): number {
    return this.#parts.lifecycle.createdMs
  }

  get lastInputMs(): number | null {
    return this.#parts.lifecycle.lastInputMs
  }

  get lastOutputMs(): number | null {
    return this.#parts.lifecycle.lastOutputMs
  }

  /** Starts the process without waiting for a hello. */
  start(start: StartParameters, nowMs: number): readonly ServerEffect[] {
    startProcess(this.#parts, start)
    return this.#settle(nowMs)
  }

  /** A connection was opened for this session. A plain one is an attachment at once, a `sandwire.v1` one after its hello. */
  connected(
    connectionId: ConnectionId,
    rights: ConnectionRights,
    start: StartParameters,
    nowMs: number,
  ): readonly ServerEffect[] {
    this.#parts.connections.add(connectionId, rights, nowMs)
    const refusal = checkConnection(this.#parts, rights, nowMs)
    if (refusal !== undefined) refuseConnection(this.#parts, connectionId, refusal, nowMs)
    else if (rights.dialect === 'plain') admitPlain(this.#parts, { connectionId, rights }, start, nowMs)
    return this.#settle(nowMs)
  }

  /** A message came in on a connection. */
  received(connectionId: ConnectionId, wire: WireMessage, nowMs: number): readonly ServerEffect[] {
    const known = this.#parts.connections.get(connectionId)
    if (known === undefined) return []
    known.lastReceivedMs = nowMs
    const { messagesPerSecond } = this.#parts.options.limits
    const isBulk = typeof wire !== 'string' && wire.byteLength >= BULK_BYTES
    const refusal: Refusal | undefined = known.messages.take(isBulk ? 0 : 1, nowMs)
      ? this.#handle(connectionId, known.rights, wire, nowMs)
      : { code: 'rate_limited', message: `Cannot take more than ${messagesPerSecond} messages a second` }
    if (refusal !== undefined) refuseConnection(this.#parts, connectionId, refusal, nowMs)
    // Input changes nothing about output, and a key's way to the process is short.
    else if (typeof wire !== 'string') return this.#parts.effects.take()
    return this.#settle(nowMs)
  }

  /** A connection is gone, whichever side closed it. */
  disconnected(connectionId: ConnectionId, nowMs: number): readonly ServerEffect[] {
    dropConnection(this.#parts, connectionId, nowMs)
    return this.#settle(nowMs)
  }

  /** The connection's own buffer is full. */
  blocked(connectionId: ConnectionId): void {
    const attachment = this.#parts.attachments.byConnection(connectionId)
    if (attachment !== undefined) attachment.isBlocked = true
  }

  /** The connection's own buffer is empty again. */
  drained(connectionId: ConnectionId, nowMs: number): readonly ServerEffect[] {
    const attachment = this.#parts.attachments.byConnection(connectionId)
    if (attachment !== undefined) attachment.isBlocked = false
    return this.#settle(nowMs)
  }

  /** The process wrote. The bytes belong to the session from then on. */
  output(stream: OutputStream, bytes: Uint8Array, nowMs: number): readonly ServerEffect[] {
    const { lifecycle, log, attachments } = this.#parts
    if (lifecycle.state.is !== 'running' || bytes.byteLength === 0) return []
    lifecycle.recordOutput(nowMs)
    const { driver } = attachments
    // Its time to show progress begins with the first byte it has not got.
    if (driver?.acked === log.end) driver.ackProgressMs = nowMs
    log.append(stream, bytes)
    return this.#settle(nowMs)
  }

  /** The process took `bytes` more of its input. */
  inputSettled(bytes: number, nowMs: number): readonly ServerEffect[] {
    const { input, effects } = this.#parts
    input.settled(bytes, nowMs)
    return effects.take()
  }

  /** The process's terminal refused the oldest unsettled input; its writer is told. */
  inputRefused(refusal: Refusal): readonly ServerEffect[] {
    const { input, effects } = this.#parts
    const writer = input.oldestWriter
    if (writer !== undefined) effects.sendWarning(writer, refusal)
    return effects.take()
  }

  /** Nobody will read the process's input any more. */
  inputClosed(nowMs: number): readonly ServerEffect[] {
    const { input, attachments } = this.#parts
    input.close(attachments.all(), nowMs, true)
    return this.#settle(nowMs)
  }

  /** The process ended, after its last output. */
  ended(exit: ProcessExit, nowMs: number): readonly ServerEffect[] {
    if (this.state.is === 'running') this.#exit(exit, nowMs)
    return this.#settle(nowMs)
  }

  /** The process could not be started; attachments get the reason and then an exit. */
  startFailed(refusal: Refusal, nowMs: number): readonly ServerEffect[] {
    if (this.state.is !== 'running') return []
    const { attachments, effects } = this.#parts
    for (const attachment of attachments.all()) effects.sendWarning(attachment, refusal)
    this.#exit({ code: ERRORS[refusal.code].exit, signal: null, truncated: false }, nowMs)
    return this.#settle(nowMs)
  }

  /** A screen asked for was rendered. */
  snapshotReady(attachmentId: string, snapshot: Snapshot, nowMs: number): readonly ServerEffect[] {
    const { attachments, pump, effects } = this.#parts
    const attachment = attachments.byId(attachmentId)
    if (attachment?.awaitsSnapshot !== true) return []
    pump.sendSnapshot(attachment, snapshot)
    if (!snapshot.exact) effects.push({ do: 'repaint' })
    return this.#settle(nowMs)
  }

  /** A new turn of the event loop, after the effect `again`. */
  turn(nowMs: number): readonly ServerEffect[] {
    this.#parts.pump.turn()
    return this.#settle(nowMs)
  }

  /** Ends the process and then the session, on request. */
  end(nowMs: number): readonly ServerEffect[] {
    beginEnding(this.#parts, nowMs)
    return this.#settle(nowMs)
  }

  /** Ends every connection with a reason that lets clients resume, for example before the server restarts. */
  closeAll(refusal: Refusal, nowMs: number): readonly ServerEffect[] {
    for (const [connectionId] of this.#parts.connections.all())
      refuseConnection(this.#parts, connectionId, refusal, nowMs)
    return this.#settle(nowMs)
  }

  /** Tells attachments of an end that is near, while everything goes on; a connection without a hello comes too late for it. */
  warnAll(refusal: Refusal, nowMs: number): readonly ServerEffect[] {
    const { connections, attachments, effects } = this.#parts
    for (const [connectionId] of connections.all()) {
      const attachment = attachments.byConnection(connectionId)
      if (attachment === undefined) refuseConnection(this.#parts, connectionId, refusal, nowMs)
      else effects.sendWarning(attachment, refusal)
    }
    return this.#settle(nowMs)
  }

  /** Cuts off the attachments that match, for good; says how many had a connection. */
  revoke(
    which: AttachmentFilter,
    nowMs: number,
  ): { readonly effects: readonly ServerEffect[]; readonly closed: number } {
    const closed = revoke(this.#parts, which, nowMs)
    return { effects: this.#settle(nowMs), closed }
  }

  /** Time has passed. */
  tick(nowMs: number): readonly ServerEffect[] {
    expire(this.#parts, nowMs)
    return this.#settle(nowMs)
  }

  /** When `tick` is next needed; undefined when no clock runs. */
  nextTickMs(nowMs: number): number | undefined {
    return nextExpiryMs(this.#parts, nowMs)
  }

  #exit(exit: ProcessExit, nowMs: number): void {
    this.#parts.lifecycle.exit(exit, nowMs)
    this.#parts.input.close(this.#parts.attachments.all(), nowMs, false)
  }

  #handle(
    connectionId: ConnectionId,
    rights: ConnectionRights,
    wire: WireMessage,
    nowMs: number,
  ): Refusal | undefined {
    if (wire.length > MAX_MESSAGE_BYTES) {
      return { code: 'frame_too_large', message: `Cannot take a message over ${MAX_MESSAGE_BYTES} bytes` }
    }
    const frame = rights.dialect === 'v1' ? decodeClient(wire) : decodePlainClient(wire)
    if (frame === undefined) return { code: 'bad_frame', message: 'Cannot decode frame' }
    const attachment = this.#parts.attachments.byConnection(connectionId)
    if (attachment === undefined) {
      const isHello = frame.kind === 'control' && frame.message.type === 'hello'
      if (!isHello) return { code: 'bad_frame', message: 'Cannot take a frame before hello' }
      return handleHello(this.#parts, { connectionId, rights }, frame.message, nowMs)
    }
    if (frame.kind === 'control') return handleControl(this.#parts, attachment, frame.message, nowMs)
    this.#parts.lifecycle.recordInput(nowMs)
    return this.#parts.input.accept(attachment, frame.bytes, nowMs)
  }

  /** What follows from any change: output goes out, exits are told, the process is paused or resumed. */
  #settle(nowMs: number): readonly ServerEffect[] {
    const { lifecycle, attachments, options, effects, flow } = this.#parts
    if (lifecycle.state.is === 'gone') return effects.take()
    const { driver } = attachments
    if (driver !== undefined) this.#serve(driver, nowMs)
    for (const attachment of attachments.all()) if (attachment !== driver) this.#serve(attachment, nowMs)
    const isEmpty = attachments.attachedCount === 0
    const isEnding = lifecycle.endingSinceMs !== null
    if (lifecycle.state.is === 'running') flow.apply(driver, isEnding && isEmpty, nowMs)
    const endMs = options.keepSeconds === 0 ? lifecycle.idleEndMs(0) : undefined
    const isLeft = endMs !== undefined && nowMs >= endMs
    const isOver = lifecycle.state.is === 'exited' && isEmpty && (isEnding || isLeft)
    if (isOver || (isEnding && lifecycle.state.is === 'pending')) {
      endSession(this.#parts, 'session_ended', nowMs)
    } else if (lifecycle.state.is === 'running' && isLeft) {
      beginEnding(this.#parts, nowMs)
    }
    return effects.take()
  }

  #serve(attachment: Attachment, nowMs: number): void {
    if (attachment.state.is !== 'attached') return
    const { input, pump, attachments } = this.#parts
    this.#pong(attachment)
    input.ackIfDue(attachment, nowMs)
    attachments.sendPresence(attachment, nowMs)
    pump.pump(attachment, nowMs)
    if (knowsNoWindow(attachment) && !attachment.isBlocked) {
      attachment.acked = attachment.sent
      attachment.ackProgressMs = nowMs
      attachment.isStalled = false
    }
    sendExit(this.#parts, attachment)
  }

  /** Answers the last ping once the connection takes it: a client that does not read gets one answer, not thousands. */
  #pong(attachment: Attachment): void {
    if (attachment.pendingPongId === undefined || attachment.isBlocked) return
    this.#parts.effects.send(attachment, { type: 'pong', id: attachment.pendingPongId })
    attachment.pendingPongId = undefined
  }
}
