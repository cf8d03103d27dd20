import { decodeClient, decodePlainClient, type WireMessage } from '../codec.ts'
import type { OutputStream } from '../data-frame.ts'
import { ERRORS } from '../errors.ts'
import { BULK_BYTES, MAX_MESSAGE_BYTES } from '../limits.ts'
import type { OutputLog } from '../output-log.ts'
import type { ResizeLog } from '../resize-log.ts'
import { type Attachment, knowsNoWindow } from './attachment.ts'
import { control } from './controls.ts'
import { dropLink, refuseLink } from './departure.ts'
import type { LinkId, Refusal, ServerEffect } from './effects.ts'
import { beginEnding } from './ending.ts'
import { tellExit } from './exit-teller.ts'
import { greet, greetPlain, refuseConnection, startProcess, type StartParameters } from './greeting.ts'
import type { LinkRights } from './link-table.ts'
import type { Snapshot } from './output-pump.ts'
import type { Roster } from './roster.ts'
import { revoke, type WhichAttachments } from './revocation.ts'
import { expire, nextExpiryMs, vanish } from './session-clocks.ts'
import type { ProcessExit, SessionState } from './session-life.ts'
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
    return this.#parts.life.state
  }

  get log(): OutputLog {
    return this.#parts.log
  }

  get resizes(): ResizeLog {
    return this.#parts.resizes
  }

  get roster(): Roster {
    return this.#parts.roster
  }

  get isPaused(): boolean {
    return this.#parts.valve.isPaused
  }

  get createdMs(): number {
    return this.#parts.life.createdMs
  }

  get lastInputMs(): number | null {
    return this.#parts.life.lastInputMs
  }

  get lastOutputMs(): number | null {
    return this.#parts.life.lastOutputMs
  }

  /** Starts the process without waiting for a hello. */
  start(start: StartParameters, nowMs: number): readonly ServerEffect[] {
    startProcess(this.#parts, start)
    return this.#settle(nowMs)
  }

  /** A connection was opened for this session. A plain one is an attachment at once, a `sandwire.v1` one after its hello. */
  connected(
    link: LinkId,
    rights: LinkRights,
    start: StartParameters,
    nowMs: number,
  ): readonly ServerEffect[] {
    this.#parts.links.add(link, rights, nowMs)
    const refusal = refuseConnection(this.#parts, rights, nowMs)
    if (refusal !== undefined) refuseLink(this.#parts, link, refusal, nowMs)
    else if (rights.dialect === 'plain') greetPlain(this.#parts, { link, rights }, start, nowMs)
    return this.#settle(nowMs)
  }

  /** A message came in on a connection. */
  received(link: LinkId, wire: WireMessage, nowMs: number): readonly ServerEffect[] {
    const known = this.#parts.links.get(link)
    if (known === undefined) return []
    known.lastHeardMs = nowMs
    const { messagesPerSecond } = this.#parts.options.limits
    const isBulk = typeof wire !== 'string' && wire.byteLength >= BULK_BYTES
    const refusal: Refusal | undefined = known.messages.take(isBulk ? 0 : 1, nowMs)
      ? this.#handle(link, known.rights, wire, nowMs)
      : { code: 'rate_limited', message: `Cannot take more than ${messagesPerSecond} messages a second` }
    if (refusal !== undefined) refuseLink(this.#parts, link, refusal, nowMs)
    // Input changes nothing about output, and a key's way to the process is short.
    else if (typeof wire !== 'string') return this.#parts.outbox.take()
    return this.#settle(nowMs)
  }

  /** A connection is gone, whichever side closed it. */
  disconnected(link: LinkId, nowMs: number): readonly ServerEffect[] {
    dropLink(this.#parts, link, nowMs)
    return this.#settle(nowMs)
  }

  /** The connection's own buffer is full. */
  blocked(link: LinkId): void {
    const attachment = this.#parts.roster.ofLink(link)
    if (attachment !== undefined) attachment.isBlocked = true
  }

  /** The connection's own buffer is empty again. */
  drained(link: LinkId, nowMs: number): readonly ServerEffect[] {
    const attachment = this.#parts.roster.ofLink(link)
    if (attachment !== undefined) attachment.isBlocked = false
    return this.#settle(nowMs)
  }

  /** The process wrote. The bytes belong to the session from then on. */
  output(stream: OutputStream, bytes: Uint8Array, nowMs: number): readonly ServerEffect[] {
    const { life, log, roster } = this.#parts
    if (life.state.is !== 'running' || bytes.byteLength === 0) return []
    life.noteOutput(nowMs)
    const { driver } = roster
    // Its time to show progress begins with the first byte it has not got.
    if (driver?.acked === log.end) driver.ackProgressMs = nowMs
    log.append(stream, bytes)
    return this.#settle(nowMs)
  }

  /** The process took `bytes` more of its input. */
  inputSettled(bytes: number, nowMs: number): readonly ServerEffect[] {
    const { gate, outbox } = this.#parts
    gate.settled(bytes, nowMs)
    return outbox.take()
  }

  /** The process's terminal refused the oldest unsettled input; its writer is told. */
  inputRefused(refusal: Refusal): readonly ServerEffect[] {
    const { gate, outbox } = this.#parts
    const writer = gate.oldestWriter
    if (writer !== undefined) outbox.warn(writer, refusal)
    return outbox.take()
  }

  /** Nobody will read the process's input any more. */
  inputClosed(nowMs: number): readonly ServerEffect[] {
    const { gate, roster } = this.#parts
    gate.close(roster.all(), nowMs, true)
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
    const { roster, outbox } = this.#parts
    for (const attachment of roster.all()) outbox.warn(attachment, refusal)
    this.#exit({ code: ERRORS[refusal.code].exit, signal: null, truncated: false }, nowMs)
    return this.#settle(nowMs)
  }

  /** A screen asked for was rendered. */
  snapshotReady(attachmentId: string, snapshot: Snapshot, nowMs: number): readonly ServerEffect[] {
    const { roster, pump, outbox } = this.#parts
    const attachment = roster.ofId(attachmentId)
    if (attachment?.awaitsSnapshot !== true) return []
    pump.sendSnapshot(attachment, snapshot)
    if (!snapshot.exact) outbox.push({ do: 'repaint' })
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
    for (const [link] of this.#parts.links.all()) refuseLink(this.#parts, link, refusal, nowMs)
    return this.#settle(nowMs)
  }

  /** Tells attachments of an end that is near, while everything goes on; a connection without a hello comes too late for it. */
  forewarn(refusal: Refusal, nowMs: number): readonly ServerEffect[] {
    const { links, roster, outbox } = this.#parts
    for (const [link] of links.all()) {
      const attachment = roster.ofLink(link)
      if (attachment === undefined) refuseLink(this.#parts, link, refusal, nowMs)
      else outbox.warn(attachment, refusal)
    }
    return this.#settle(nowMs)
  }

  /** Cuts off the attachments that match, for good; says how many had a connection. */
  revoke(
    which: WhichAttachments,
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
    this.#parts.life.exit(exit, nowMs)
    this.#parts.gate.close(this.#parts.roster.all(), nowMs, false)
  }

  #handle(link: LinkId, rights: LinkRights, wire: WireMessage, nowMs: number): Refusal | undefined {
    if (wire.length > MAX_MESSAGE_BYTES) {
      return { code: 'frame_too_large', message: `Cannot take a message over ${MAX_MESSAGE_BYTES} bytes` }
    }
    const frame = rights.dialect === 'v1' ? decodeClient(wire) : decodePlainClient(wire)
    if (frame === undefined) return { code: 'bad_frame', message: 'Cannot decode frame' }
    const attachment = this.#parts.roster.ofLink(link)
    if (attachment === undefined) {
      const isHello = frame.kind === 'control' && frame.message.type === 'hello'
      if (!isHello) return { code: 'bad_frame', message: 'Cannot take a frame before hello' }
      return greet(this.#parts, { link, rights }, frame.message, nowMs)
    }
    if (frame.kind === 'control') return control(this.#parts, attachment, frame.message, nowMs)
    this.#parts.life.noteInput(nowMs)
    return this.#parts.gate.accept(attachment, frame.bytes, nowMs)
  }

  /** What follows from any change: output goes out, exits are told, the process is paused or resumed. */
  #settle(nowMs: number): readonly ServerEffect[] {
    const { life, roster, options, outbox, valve } = this.#parts
    if (life.state.is === 'gone') return outbox.take()
    const { driver } = roster
    if (driver !== undefined) this.#serve(driver, nowMs)
    for (const attachment of roster.all()) if (attachment !== driver) this.#serve(attachment, nowMs)
    const isEmpty = roster.attachedCount === 0
    const isEnding = life.endingSinceMs !== null
    if (life.state.is === 'running') valve.apply(driver, isEnding && isEmpty, nowMs)
    const endMs = options.keepSeconds === 0 ? life.idleEndMs(0) : undefined
    const isLeft = endMs !== undefined && nowMs >= endMs
    const isOver = life.state.is === 'exited' && isEmpty && (isEnding || isLeft)
    if (isOver || (isEnding && life.state.is === 'pending')) {
      vanish(this.#parts, 'session_ended', nowMs)
    } else if (life.state.is === 'running' && isLeft) {
      beginEnding(this.#parts, nowMs)
    }
    return outbox.take()
  }

  #serve(attachment: Attachment, nowMs: number): void {
    if (attachment.state.is !== 'attached') return
    const { gate, pump, roster } = this.#parts
    this.#pong(attachment)
    gate.ackIfDue(attachment, nowMs)
    roster.tellPresence(attachment, nowMs)
    pump.pump(attachment, nowMs)
    if (knowsNoWindow(attachment) && !attachment.isBlocked) {
      attachment.acked = attachment.sent
      attachment.ackProgressMs = nowMs
      attachment.isStalled = false
    }
    tellExit(this.#parts, attachment)
  }

  /** Answers the last ping once the connection takes it: a client that does not read gets one answer, not thousands. */
  #pong(attachment: Attachment): void {
    if (attachment.pongOwed === undefined || attachment.isBlocked) return
    this.#parts.outbox.tell(attachment, { type: 'pong', id: attachment.pongOwed })
    attachment.pongOwed = undefined
  }
}
