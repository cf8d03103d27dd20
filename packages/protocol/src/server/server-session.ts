import { decodeClient, decodePlainClient, encode, type WireMessage } from '../codec.ts'
import type { OutputStream } from '../data-frame.ts'
import { ERRORS } from '../errors.ts'
import { RATE_EXEMPT_FRAME_BYTES, MAX_MESSAGE_BYTES } from '../limits.ts'
import type { OutputLog } from '../output-log.ts'
import type { ResizeLog } from '../resize-log.ts'
import { signalNumber } from '../signal-number.ts'
import type { Attachment } from './attachment.ts'
import { handleControl } from './control-messages.ts'
import { beginEnding, dropConnection, endSession, refuseConnection } from './teardown.ts'
import type { ConnectionId, Refusal, ServerEffect } from './effects.ts'
import { handleHello, admitPlain, checkConnection, startProcess, type StartParameters } from './handshake.ts'
import type { ConnectionRights } from './connection-table.ts'
import type { Snapshot } from './output-pump.ts'
import type { AttachmentList } from './attachment-list.ts'
import { revoke, type AttachmentFilter } from './revocation.ts'
import { expire, nextExpiryMs } from './timers.ts'
import type { ProcessExit, SessionState } from './session-lifecycle.ts'
import type { SessionOptions } from './session-options.ts'
import { createParts, type SessionParts } from './session-parts.ts'

/**
 * A process, its output log and its attachments, without any I/O: every method takes the time and returns the effects to
 * perform. The process outlives its connections, and each attachment outlives its own.
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

  /** A connection was opened. A plain client is attached at once, a `sandwire.v1` client after its hello. */
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

  /** A message was received on a connection. */
  received(connectionId: ConnectionId, wire: WireMessage, nowMs: number): readonly ServerEffect[] {
    const known = this.#parts.connections.get(connectionId)
    if (known === undefined) return []
    known.lastReceivedMs = nowMs
    const { messagesPerSecond } = this.#parts.options.limits
    const isBulk = typeof wire !== 'string' && wire.byteLength >= RATE_EXEMPT_FRAME_BYTES
    const refusal: Refusal | undefined = known.messages.take(isBulk ? 0 : 1, nowMs)
      ? this.#handle(connectionId, known.rights, wire, nowMs)
      : { code: 'rate_limited', message: `Cannot accept more than ${messagesPerSecond} messages per second` }
    if (refusal !== undefined) refuseConnection(this.#parts, connectionId, refusal, nowMs)
    // Input does not affect output, so a keystroke takes the short path.
    else if (typeof wire !== 'string') return this.#parts.effects.take()
    return this.#settle(nowMs)
  }

  /** A connection was closed, by either side. */
  disconnected(connectionId: ConnectionId, nowMs: number): readonly ServerEffect[] {
    dropConnection(this.#parts, connectionId, nowMs)
    return this.#settle(nowMs)
  }

  /** The connection's send buffer is full. */
  blocked(connectionId: ConnectionId): void {
    const attachment = this.#parts.attachments.byConnection(connectionId)
    if (attachment !== undefined) attachment.isBlocked = true
  }

  /** The connection's send buffer has drained. */
  drained(connectionId: ConnectionId, nowMs: number): readonly ServerEffect[] {
    const attachment = this.#parts.attachments.byConnection(connectionId)
    if (attachment !== undefined) this.#parts.pump.drained(attachment)
    return this.#settle(nowMs)
  }

  /** The process has written output. The session takes ownership of the bytes. */
  output(stream: OutputStream, bytes: Uint8Array, nowMs: number): readonly ServerEffect[] {
    const { lifecycle, log, attachments } = this.#parts
    if (lifecycle.state.kind !== 'running' || bytes.byteLength === 0) return []
    lifecycle.recordOutput(nowMs)
    const { driver } = attachments
    // The driver's time to show progress starts with the first byte it has not acknowledged.
    if (driver?.acked === log.end) driver.ackProgressMs = nowMs
    log.append(stream, bytes)
    return this.#settle(nowMs)
  }

  /** The terminal has another size from here on, which its process chose. */
  resizedByProcess(cols: number, rows: number, nowMs: number): readonly ServerEffect[] {
    const { lifecycle, log, resizes } = this.#parts
    if (lifecycle.state.kind === 'running') resizes.record(log.end, cols, rows)
    return this.#settle(nowMs)
  }

  /** The process has read `bytes` more of its input. */
  inputSettled(bytes: number, nowMs: number): readonly ServerEffect[] {
    const { input, effects } = this.#parts
    input.settled(bytes, nowMs)
    return effects.take()
  }

  /** The terminal refused the oldest unsettled input; its writer is sent the reason. */
  inputRefused(refusal: Refusal): readonly ServerEffect[] {
    const { input, effects } = this.#parts
    const writer = input.oldestWriter
    if (writer !== undefined) effects.sendWarning(writer, refusal)
    return effects.take()
  }

  /** The process no longer reads its input. */
  inputClosed(nowMs: number): readonly ServerEffect[] {
    const { input, attachments } = this.#parts
    input.close(attachments.all(), nowMs, true)
    return this.#settle(nowMs)
  }

  /** The process has exited, after its last output. */
  ended(exit: ProcessExit, nowMs: number): readonly ServerEffect[] {
    if (this.state.kind === 'running') this.#exit(exit, nowMs)
    return this.#settle(nowMs)
  }

  /** The process could not be started; attachments are sent the reason and then an exit. */
  startFailed(refusal: Refusal, nowMs: number): readonly ServerEffect[] {
    if (this.state.kind !== 'running') return []
    const { attachments, effects } = this.#parts
    for (const attachment of attachments.all()) effects.sendWarning(attachment, refusal)
    this.#exit({ code: ERRORS[refusal.code].exit, signal: null, truncated: false }, nowMs)
    return this.#settle(nowMs)
  }

  /** A requested snapshot was rendered. */
  snapshotReady(attachmentId: string, snapshot: Snapshot, nowMs: number): readonly ServerEffect[] {
    const { attachments, pump, effects } = this.#parts
    const attachment = attachments.byId(attachmentId)
    if (attachment?.outputPhase !== 'awaitingSnapshot') return []
    pump.sendSnapshot(attachment, snapshot)
    if (!snapshot.exact) effects.push({ do: 'repaint' })
    return this.#settle(nowMs)
  }

  /** A new turn of the event loop has begun, after the effect `again`. */
  turn(nowMs: number): readonly ServerEffect[] {
    this.#parts.pump.turn()
    return this.#settle(nowMs)
  }

  /** Terminates the process and then ends the session, on request. */
  end(nowMs: number): readonly ServerEffect[] {
    beginEnding(this.#parts, nowMs)
    return this.#settle(nowMs)
  }

  /** Closes every connection with a reason that lets clients resume, for example before the server restarts. */
  closeAll(refusal: Refusal, nowMs: number): readonly ServerEffect[] {
    for (const [connectionId] of this.#parts.connections.all())
      refuseConnection(this.#parts, connectionId, refusal, nowMs)
    return this.#settle(nowMs)
  }

  /** Warns attachments before a shutdown, without ending anything; connections without a hello are closed. */
  warnAll(refusal: Refusal, nowMs: number): readonly ServerEffect[] {
    const { connections, attachments, effects } = this.#parts
    for (const [connectionId] of connections.all()) {
      const attachment = attachments.byConnection(connectionId)
      if (attachment === undefined) refuseConnection(this.#parts, connectionId, refusal, nowMs)
      else effects.sendWarning(attachment, refusal)
    }
    return this.#settle(nowMs)
  }

  /** Revokes the matching attachments; returns how many connections it closed. */
  revoke(
    filter: AttachmentFilter,
    nowMs: number,
  ): { readonly effects: readonly ServerEffect[]; readonly closed: number } {
    const closed = revoke(this.#parts, filter, nowMs)
    return { effects: this.#settle(nowMs), closed }
  }

  /** Time has passed. */
  tick(nowMs: number): readonly ServerEffect[] {
    expire(this.#parts, nowMs)
    return this.#settle(nowMs)
  }

  /** When `tick` is next needed; undefined when no timeout is running. */
  nextTickMs(nowMs: number): number | undefined {
    return nextExpiryMs(this.#parts, nowMs)
  }

  #exit(exit: ProcessExit, nowMs: number): void {
    this.#parts.lifecycle.exit(exit, nowMs)
    this.#parts.attachments.endPrivate()
    this.#parts.input.close(this.#parts.attachments.all(), nowMs, false)
  }

  #handle(
    connectionId: ConnectionId,
    rights: ConnectionRights,
    wire: WireMessage,
    nowMs: number,
  ): Refusal | undefined {
    if (wire.length > MAX_MESSAGE_BYTES) {
      return { code: 'frame_too_large', message: `Cannot accept a message over ${MAX_MESSAGE_BYTES} bytes` }
    }
    const frame = rights.dialect === 'v1' ? decodeClient(wire) : decodePlainClient(wire)
    if (frame === undefined) return { code: 'bad_frame', message: 'Cannot decode frame' }
    const attachment = this.#parts.attachments.byConnection(connectionId)
    if (attachment === undefined) {
      const isHello = frame.kind === 'control' && frame.message.type === 'hello'
      if (!isHello) return { code: 'bad_frame', message: 'Cannot accept a frame before hello' }
      return handleHello(this.#parts, { connectionId, rights }, frame.message, nowMs)
    }
    if (frame.kind === 'control') return handleControl(this.#parts, attachment, frame.message, nowMs)
    if (attachment.isAgent && this.#parts.attachments.isInputPrivate)
      return { code: 'role_refused', message: 'Cannot take input: input is private' }
    this.#parts.lifecycle.recordInput(nowMs)
    return this.#parts.input.accept(attachment, frame.bytes, nowMs)
  }

  /** Runs after every change: sends output and exits, pauses or resumes the process, ends the session when it is over. */
  #settle(nowMs: number): readonly ServerEffect[] {
    const { lifecycle, attachments, options, effects, flow } = this.#parts
    if (lifecycle.state.kind === 'gone') return effects.take()
    const { driver } = attachments
    if (driver !== undefined) this.#serve(driver, nowMs)
    for (const attachment of attachments.all()) if (attachment !== driver) this.#serve(attachment, nowMs)
    const isEmpty = attachments.attachedCount === 0
    const isEnding = lifecycle.endingSinceMs !== null
    if (lifecycle.state.kind === 'running') flow.apply(driver, isEnding && isEmpty, nowMs)
    const endMs = options.keepSeconds === 0 ? lifecycle.idleEndMs(0) : undefined
    const isExpired = endMs !== undefined && nowMs >= endMs
    const isOver = lifecycle.state.kind === 'exited' && isEmpty && (isEnding || isExpired)
    if (isOver || (isEnding && lifecycle.state.kind === 'pending')) {
      endSession(this.#parts, 'session_ended', nowMs)
    } else if (lifecycle.state.kind === 'running' && isExpired) {
      beginEnding(this.#parts, nowMs)
    }
    return effects.take()
  }

  #serve(attachment: Attachment, nowMs: number): void {
    if (attachment.state.kind !== 'attached') return
    const { input, pump, attachments } = this.#parts
    this.#pong(attachment)
    input.ackIfDue(attachment, nowMs)
    attachments.sendPresence(attachment, nowMs)
    pump.pump(attachment, attachments.isInputPrivate, nowMs)
    if (attachment.acknowledgement === 'connection' && !attachment.isBlocked) {
      attachment.acked = attachment.sent
      attachment.ackProgressMs = nowMs
      attachment.isStalled = false
    }
    this.#sendExit(attachment)
  }

  /** Sends the exit after all output, and closes the connection once the client has consumed everything. */
  #sendExit(attachment: Attachment): void {
    const { lifecycle, log, effects } = this.#parts
    const { state } = lifecycle
    if (state.kind !== 'exited' || attachment.state.kind !== 'attached') return
    if (attachment.outputPhase === 'awaitingSnapshot' || attachment.sent !== log.end) return
    if (attachment.withheldFrom !== undefined) return
    const { exit } = state
    const { connectionId } = attachment.state
    if (attachment.outputPhase === 'streaming') {
      attachment.outputPhase = 'exitSent'
      if (attachment.dialect === 'plain') {
        const code = exit.code ?? 128 + (signalNumber(exit.signal ?? '') ?? 0)
        const signal = exit.signal === null ? {} : { signal: exit.signal }
        effects.push({ do: 'send', connectionId, data: encode({ type: 'exit', code, ...signal }) })
      } else effects.send(attachment, { type: 'exit', ...exit, outputEnd: log.end })
    }
    const isConsumed = attachment.dialect === 'plain' || attachment.acked === log.end
    if (attachment.outputPhase !== 'exitSent' || !isConsumed) return
    attachment.outputPhase = 'complete'
    effects.closeNormally(connectionId)
  }

  /** Answers the last ping once the connection accepts it: a client that does not read gets one answer, not thousands. */
  #pong(attachment: Attachment): void {
    if (attachment.pendingPongId === undefined || attachment.isBlocked) return
    this.#parts.effects.send(attachment, { type: 'pong', id: attachment.pendingPongId })
    attachment.pendingPongId = undefined
  }
}
