import type { ClientMessage, Hello, PlainClientMessage, Role } from '../client-frames.ts'
import { decodeClient, decodePlainClient, encode, type WireMessage } from '../codec.ts'
import type { OutputStream } from '../data-frame.ts'
import { ERRORS, type ErrorCode } from '../errors.ts'
import { MAX_WINDOW_BYTES } from '../limits.ts'
import { OutputLog } from '../output-log.ts'
import { ResizeLog } from '../resize-log.ts'
import { signalNumber } from '../signal-number.ts'
import { TokenBucket } from '../token-bucket.ts'
import { COMPATIBLE_FROM, PROTOCOL_VERSION } from '../version.ts'
import { type Attachment, createAttachment, type Dialect, lesserRole } from './attachment.ts'
import type { LinkId, Refusal, ServerEffect } from './effects.ts'
import { type FlowInputs, keepFrom, shouldPause } from './flow.ts'
import { InputGate, type PlacedMessage } from './input-gate.ts'
import { Outbox } from './outbox.ts'
import { OutputPump, type Snapshot } from './output-pump.ts'
import { Roster } from './roster.ts'
import type { SessionOptions } from './session-options.ts'

/** How long an ending session waits for its process and its readers before it is gone all the same. */
const ENDING_MS = 10_000

/** How a process ended; exactly one of `code` and `signal` is set. */
export interface ProcessExit {
  readonly code: number | null
  readonly signal: string | null
  readonly truncated: boolean
}

/** What the URL and token of a connection allow. */
export interface LinkRights {
  readonly principal: string
  readonly authority: Role
  readonly dialect: Dialect
  /** Take the lease even if somebody drives. */
  readonly take: boolean
}

/** Environment and size for the process that a first hello starts. */
export interface StartParameters {
  readonly env: Readonly<Record<string, string>>
  readonly cols: number
  readonly rows: number
}

/** Where the session is in its life. */
export type SessionState =
  /** Created; the process starts at the first hello. */
  | { readonly is: 'pending'; readonly sinceMs: number }
  | { readonly is: 'running' }
  | { readonly is: 'exited'; readonly exit: ProcessExit; readonly atMs: number }
  | { readonly is: 'gone' }

/** A connection that has not said hello, or one that has: what is known of it. */
interface Link {
  readonly rights: LinkRights
  readonly sinceMs: number
  lastHeardMs: number
  readonly messages: TokenBucket
}

/**
 * A process, its output log and its attachments, without any I/O: every method takes the time and returns
 * what is to be done. The process outlives connections; each attachment outlives its own.
 */
export class ServerSession {
  readonly #options: SessionOptions
  readonly #outbox = new Outbox()
  readonly #log: OutputLog
  readonly #resizes: ResizeLog
  readonly #roster: Roster
  readonly #gate: InputGate
  readonly #pump: OutputPump
  readonly #links = new Map<LinkId, Link>()
  #state: SessionState
  #isPaused = false
  /** Offset that whoever drove last has consumed. */
  #pin = 0
  #graceUntilMs: number
  /** Since when no attachment has a connection; null while one has. */
  #idleSinceMs: number | null
  /** Set once the session is to end: when that was decided. */
  #endingSinceMs: number | null = null
  #lastInputMs: number | null = null
  #lastOutputMs: number | null = null

  constructor(options: SessionOptions, nowMs: number) {
    this.#options = options
    this.#log = new OutputLog(options.limits.logBytes)
    this.#resizes = new ResizeLog(80, 24)
    this.#roster = new Roster(this.#outbox)
    this.#gate = new InputGate(this.#outbox, options.limits.inputWindowBytes)
    this.#pump = new OutputPump({
      log: this.#log,
      resizes: this.#resizes,
      outbox: this.#outbox,
      isPty: options.mode === 'pty',
      turnBytes: options.limits.turnBytes,
    })
    this.#state = { is: 'pending', sinceMs: nowMs }
    this.#graceUntilMs = nowMs + options.limits.graceMs
    this.#idleSinceMs = nowMs
  }

  get id(): string {
    return this.#options.id
  }

  get options(): SessionOptions {
    return this.#options
  }

  get state(): SessionState {
    return this.#state
  }

  get log(): OutputLog {
    return this.#log
  }

  get resizes(): ResizeLog {
    return this.#resizes
  }

  get roster(): Roster {
    return this.#roster
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  get lastInputMs(): number | null {
    return this.#lastInputMs
  }

  get lastOutputMs(): number | null {
    return this.#lastOutputMs
  }

  /** Starts the process without waiting for a hello. */
  start(start: StartParameters, nowMs: number): readonly ServerEffect[] {
    this.#start(start, nowMs)
    return this.#settle(nowMs)
  }

  /** A connection was opened for this session. A plain one is an attachment at once, a `sandwire.v1` one after its hello. */
  connected(link: LinkId, rights: LinkRights, start: StartParameters, nowMs: number): readonly ServerEffect[] {
    const { messagesPerSecond } = this.#options.limits
    const messages = new TokenBucket(messagesPerSecond, messagesPerSecond * 2, nowMs)
    this.#links.set(link, { rights, sinceMs: nowMs, lastHeardMs: nowMs, messages })
    if (this.#state.is === 'gone') this.#refuse(link, { code: 'session_gone', message: 'Cannot attach: the session has ended' }, nowMs)
    else if (rights.dialect === 'plain') this.#attachPlain(link, rights, start, nowMs)
    return this.#settle(nowMs)
  }

  /** A message came in on a connection. */
  received(link: LinkId, wire: WireMessage, nowMs: number): readonly ServerEffect[] {
    const known = this.#links.get(link)
    if (known === undefined) return []
    known.lastHeardMs = nowMs
    const refusal = known.messages.take(1, nowMs)
      ? this.#handle(link, known.rights, wire, nowMs)
      : { code: 'rate_limited' as const, message: `Cannot take more than ${this.#options.limits.messagesPerSecond} messages a second` }
    if (refusal !== undefined) this.#refuse(link, refusal, nowMs)
    return this.#settle(nowMs)
  }

  /** A connection is gone, whichever side closed it. */
  disconnected(link: LinkId, nowMs: number): readonly ServerEffect[] {
    this.#dropLink(link, nowMs)
    return this.#settle(nowMs)
  }

  /** The connection's own buffer is full. */
  blocked(link: LinkId): void {
    const attachment = this.#roster.ofLink(link)
    if (attachment !== undefined) attachment.isBlocked = true
  }

  /** The connection's own buffer is empty again. */
  drained(link: LinkId, nowMs: number): readonly ServerEffect[] {
    const attachment = this.#roster.ofLink(link)
    if (attachment !== undefined) attachment.isBlocked = false
    return this.#settle(nowMs)
  }

  /** The process wrote. */
  output(stream: OutputStream, bytes: Uint8Array, nowMs: number): readonly ServerEffect[] {
    if (this.#state.is !== 'running' || bytes.byteLength === 0) return []
    this.#lastOutputMs = nowMs
    this.#log.append(stream, bytes)
    return this.#settle(nowMs)
  }

  /** The process took `bytes` more of its input. */
  inputSettled(bytes: number, nowMs: number): readonly ServerEffect[] {
    this.#gate.settled(bytes, nowMs)
    return this.#settle(nowMs)
  }

  /** The process's terminal refused the oldest unsettled input; its writer is told. */
  inputRefused(refusal: Refusal): readonly ServerEffect[] {
    const writer = this.#gate.oldestWriter
    if (writer?.state.is === 'attached') {
      const text = { type: 'error', code: refusal.code, message: refusal.message } as const
      const data = encode(writer.dialect === 'v1' ? { ...text, fatal: false } : text)
      this.#outbox.push({ do: 'send', link: writer.state.link, data })
    }
    return this.#outbox.take()
  }

  /** Nobody will read the process's input any more. */
  inputClosed(nowMs: number): readonly ServerEffect[] {
    this.#gate.close(this.#roster.all(), nowMs)
    return this.#settle(nowMs)
  }

  /** The process ended, after its last output. */
  ended(exit: ProcessExit, nowMs: number): readonly ServerEffect[] {
    if (this.#state.is === 'running') this.#exit(exit, nowMs)
    return this.#settle(nowMs)
  }

  /** The process could not be started; attachments get the reason and then an exit. */
  startFailed(refusal: Refusal, nowMs: number): readonly ServerEffect[] {
    if (this.#state.is !== 'running') return []
    const text = { type: 'error', code: refusal.code, message: refusal.message } as const
    for (const attachment of this.#roster.all()) {
      if (attachment.state.is !== 'attached') continue
      const data = encode(attachment.dialect === 'v1' ? { ...text, fatal: false } : text)
      this.#outbox.push({ do: 'send', link: attachment.state.link, data })
    }
    this.#exit({ code: ERRORS[refusal.code].exit, signal: null, truncated: false }, nowMs)
    return this.#settle(nowMs)
  }

  /** A screen asked for was rendered. */
  snapshotReady(attachmentId: string, snapshot: Snapshot, nowMs: number): readonly ServerEffect[] {
    const attachment = this.#roster.ofId(attachmentId)
    if (attachment?.awaitsSnapshot !== true) return []
    this.#pump.sendSnapshot(attachment, snapshot)
    if (!snapshot.exact) this.#outbox.push({ do: 'repaint' })
    return this.#settle(nowMs)
  }

  /** A new turn of the event loop, after the effect `again`. */
  turn(nowMs: number): readonly ServerEffect[] {
    this.#pump.turn()
    return this.#settle(nowMs)
  }

  /** Ends the process and then the session, on request. */
  end(nowMs: number): readonly ServerEffect[] {
    this.#beginEnding(nowMs)
    return this.#settle(nowMs)
  }

  /** Ends every connection with a reason that lets clients resume, for example before the server restarts. */
  closeAll(refusal: Refusal, nowMs: number): readonly ServerEffect[] {
    for (const link of [...this.#links.keys()]) this.#refuse(link, refusal, nowMs)
    return this.#settle(nowMs)
  }

  /** Time has passed. */
  tick(nowMs: number): readonly ServerEffect[] {
    this.#expireLinks(nowMs)
    this.#expireAttachments(nowMs)
    this.#noticeStall(nowMs)
    this.#expireSession(nowMs)
    return this.#settle(nowMs)
  }

  /** When `tick` is next needed; undefined when no clock runs. */
  nextTickMs(nowMs: number): number | undefined {
    const times: number[] = []
    const { limits, keepSeconds } = this.#options
    for (const [link, known] of this.#links) {
      if (known.rights.dialect === 'plain') continue
      const isHelloed = this.#roster.ofLink(link) !== undefined
      times.push(isHelloed ? known.lastHeardMs + limits.silenceMs : known.sinceMs + limits.helloMs)
    }
    for (const attachment of this.#roster.all()) {
      if (attachment.state.is === 'detached') times.push(attachment.state.sinceMs + keepSeconds * 1000)
      if (attachment.inputAckDueMs !== undefined) times.push(attachment.inputAckDueMs)
      const wait = attachment.bandwidth?.waitMs(1, nowMs) ?? 0
      if (wait > 0 && attachment.sent < this.#log.end) times.push(nowMs + wait)
    }
    const { driver } = this.#roster
    if (driver !== undefined && this.#canStall(driver)) times.push(driver.ackProgressMs + limits.stallMs)
    if (this.#isPaused && nowMs < this.#graceUntilMs) times.push(this.#graceUntilMs)
    if (this.#state.is === 'pending') times.push(this.#state.sinceMs + limits.helloMs)
    else if (this.#idleSinceMs !== null) times.push(this.#idleSinceMs + keepSeconds * 1000)
    if (this.#endingSinceMs !== null) times.push(this.#endingSinceMs + ENDING_MS)
    return times.length === 0 || this.#state.is === 'gone' ? undefined : Math.max(nowMs, Math.min(...times))
  }

  #start(start: StartParameters, nowMs: number): void {
    if (this.#state.is !== 'pending') return
    this.#state = { is: 'running' }
    this.#graceUntilMs = nowMs + this.#options.limits.graceMs
    this.#resizes.record(0, start.cols, start.rows)
    this.#outbox.push({ do: 'start', env: start.env, cols: start.cols, rows: start.rows })
  }

  #exit(exit: ProcessExit, nowMs: number): void {
    this.#state = { is: 'exited', exit, atMs: nowMs }
    this.#gate.close([], nowMs)
    if (this.#idleSinceMs !== null) this.#idleSinceMs = nowMs
  }

  #attachPlain(link: LinkId, rights: LinkRights, start: StartParameters, nowMs: number): void {
    this.#start(start, nowMs)
    const attachment = this.#admit(link, rights, { identity: `plain-${link}`, name: '', window: MAX_WINDOW_BYTES, role: 'driver' }, nowMs)
    attachment.resizeSerial = this.#resizes.current.serial
  }

  #handle(link: LinkId, rights: LinkRights, wire: WireMessage, nowMs: number): Refusal | undefined {
    const frame = rights.dialect === 'v1' ? decodeClient(wire) : decodePlainClient(wire)
    if (frame === undefined) return { code: 'bad_frame', message: 'Cannot decode frame' }
    const attachment = this.#roster.ofLink(link)
    if (frame.kind === 'control' && frame.message.type === 'hello') {
      return attachment === undefined
        ? this.#hello(link, rights, frame.message, nowMs)
        : { code: 'bad_frame', message: 'Cannot take a second hello' }
    }
    if (attachment === undefined) return { code: 'bad_frame', message: 'Cannot take a frame before hello' }
    if (frame.kind === 'input') {
      this.#lastInputMs = nowMs
      return this.#gate.accept(attachment, frame.bytes, nowMs)
    }
    return this.#control(attachment, frame.message, nowMs)
  }

  #hello(link: LinkId, rights: LinkRights, hello: Hello, nowMs: number): Refusal | undefined {
    if (hello.version < COMPATIBLE_FROM || hello.version > PROTOCOL_VERSION) {
      return { code: 'version_unsupported', message: `Cannot talk version ${hello.version}: this side has ${COMPATIBLE_FROM} to ${PROTOCOL_VERSION}` }
    }
    if (hello.role !== undefined && lesserRole(hello.role, rights.authority) !== hello.role) {
      return { code: 'forbidden', message: `Cannot become ${hello.role}: this connection may be ${rights.authority}` }
    }
    const known = this.#roster.ofIdentity(hello.identity)
    if (known !== undefined) return this.#resume(link, rights, known, hello, nowMs)
    if (hello.resuming) return { code: 'resume_lost', message: 'Cannot resume: the attachment is not known any more' }
    const crowded = this.#makeRoom()
    if (crowded !== undefined) return crowded
    const isFirst = this.#state.is === 'pending'
    this.#start({ env: hello.env ?? {}, cols: hello.cols, rows: hello.rows }, nowMs)
    const role = hello.role ?? rights.authority
    const attachment = this.#admit(link, rights, { ...hello, name: hello.name ?? '', role }, nowMs)
    if (attachment.role === 'driver' && !isFirst) this.#resizeTo(hello.cols, hello.rows)
    this.#welcome(attachment)
    if (this.#options.mode === 'pty' && !isFirst) {
      attachment.base = Number.POSITIVE_INFINITY
      this.#pump.askSnapshot(attachment)
    }
    this.#gate.remind(attachment)
    this.#roster.announce()
    return undefined
  }

  #admit(
    link: LinkId,
    rights: LinkRights,
    wanted: { identity: string; name: string; window: number; role: Role },
    nowMs: number,
  ): Attachment {
    const drives = wanted.role === 'driver' && (rights.take || this.#roster.lease.isClaimable(nowMs))
    const attachment = createAttachment({
      id: this.#roster.mintId(),
      identity: wanted.identity,
      principal: rights.principal,
      dialect: rights.dialect,
      name: wanted.name,
      authority: rights.authority,
      role: wanted.role === 'driver' ? 'viewer' : wanted.role,
      link,
      from: 0,
      resizeSerial: this.#resizes.current.serial,
      windowBytes: wanted.window,
      limits: this.#options.limits,
      nowMs,
    })
    this.#roster.add(attachment)
    this.#idleSinceMs = null
    if (drives) this.#roster.grantLease(attachment)
    return attachment
  }

  #resume(link: LinkId, rights: LinkRights, attachment: Attachment, hello: Hello, nowMs: number): Refusal | undefined {
    if (attachment.principal !== rights.principal) {
      return { code: 'resume_lost', message: 'Cannot resume: the attachment is not known any more' }
    }
    if (hello.received > attachment.sentMax) {
      return { code: 'desync', message: `Cannot resume at ${hello.received}: only ${attachment.sentMax} was sent` }
    }
    const previous = this.#roster.relink(attachment, link)
    if (previous !== undefined) this.#replace(previous)
    this.#idleSinceMs = null
    attachment.authority = rights.authority
    const role = lesserRole(attachment.role, rights.authority)
    if (role !== attachment.role) {
      this.#roster.lease.free()
      attachment.role = role
    }
    attachment.deafUntilEpoch = undefined
    attachment.isBlocked = false
    attachment.isExitSent = false
    attachment.isDone = false
    attachment.isStalled = false
    attachment.ackProgressMs = nowMs
    attachment.awaitsSnapshot = false
    attachment.sent = hello.received
    attachment.acked = Math.min(attachment.acked, hello.received)
    attachment.resizeSerial = this.#resizes.sizeAt(hello.received).serial
    attachment.window.restart()
    this.#welcome(attachment)
    if (hello.received < attachment.base) this.#pump.askSnapshot(attachment)
    this.#gate.remind(attachment)
    this.#roster.announce()
    return undefined
  }

  /** Closes a connection whose attachment has moved to a newer one. */
  #replace(link: LinkId): void {
    this.#links.delete(link)
    this.#outbox.refuse(link, 'v1', { code: 'replaced', message: 'A newer connection of this attachment took over' })
  }

  #welcome(attachment: Attachment): void {
    const { cols, rows } = this.#resizes.sizeAt(attachment.sent)
    attachment.inputAckSent = { at: attachment.inputSettled, seq: attachment.controlSeq }
    attachment.inputAckDueMs = undefined
    this.#outbox.tell(attachment, {
      type: 'welcome',
      version: PROTOCOL_VERSION,
      session: this.#options.id,
      attachment: attachment.id,
      role: attachment.role,
      authority: attachment.authority,
      epoch: this.#roster.lease.epoch,
      mode: this.#options.mode,
      output: attachment.sent,
      input: { at: attachment.inputAccepted, seq: attachment.controlSeq },
      inputWindow: this.#options.limits.inputWindowBytes,
      keepSeconds: this.#options.keepSeconds,
      cols,
      rows,
    })
    this.#outbox.tell(attachment, { type: 'ack', input: attachment.inputSettled, seq: attachment.controlSeq })
  }

  /** Room for one more attachment: the longest-gone one that does not drive makes way. */
  #makeRoom(): Refusal | undefined {
    if (this.#roster.size < this.#options.limits.maxAttachments) return undefined
    for (const attachment of this.#roster.all()) {
      if (attachment.state.is === 'attached' || attachment.id === this.#roster.lease.holder) continue
      this.#roster.forget(attachment)
      return undefined
    }
    return { code: 'too_many_attachments', message: `Cannot attach: the session has ${this.#roster.size} attachments` }
  }

  #control(attachment: Attachment, message: ClientMessage | PlainClientMessage, nowMs: number): Refusal | undefined {
    switch (message.type) {
      case 'resize':
      case 'signal':
      case 'eof':
        return this.#placed(attachment, message, nowMs)
      case 'ack':
        return this.#ack(attachment, message.output, nowMs)
      case 'ping':
        this.#outbox.tell(attachment, { type: 'pong', id: message.id })
        return undefined
      case 'take':
        return this.#take(attachment)
      case 'ask':
        this.#ask(attachment)
        return undefined
      case 'give':
        return this.#give(attachment, message.to)
      case 'roleSeen':
        if (attachment.deafUntilEpoch !== undefined && message.epoch >= attachment.deafUntilEpoch) attachment.deafUntilEpoch = undefined
        return undefined
      case 'detach':
        this.#detach(attachment, nowMs)
        return undefined
      case 'hello':
        return { code: 'bad_frame', message: 'Cannot take a second hello' }
    }
  }

  #placed(attachment: Attachment, message: PlacedMessage | PlainClientMessage, nowMs: number): Refusal | undefined {
    this.#lastInputMs = nowMs
    if ('seq' in message) {
      const verdict = this.#gate.admit(attachment, message, nowMs)
      if (verdict === 'skip') return undefined
      if (verdict !== 'apply') return verdict
    }
    switch (message.type) {
      case 'resize':
        this.#resizeTo(message.cols, message.rows)
        return undefined
      case 'signal':
        if (signalNumber(message.signal) === undefined) {
          return { code: 'bad_frame', message: `Cannot send signal "${message.signal}": not a signal` }
        }
        if (this.#state.is === 'running') this.#outbox.push({ do: 'signal', signal: message.signal })
        return undefined
      case 'eof':
        if (this.#state.is === 'running') this.#outbox.push({ do: 'closeInput' })
        return undefined
    }
  }

  #resizeTo(cols: number, rows: number): void {
    const { current } = this.#resizes
    if (this.#options.mode !== 'pty' || this.#state.is !== 'running') return
    if (current.cols === cols && current.rows === rows) return
    this.#resizes.record(this.#log.end, cols, rows)
    this.#outbox.push({ do: 'resize', cols, rows })
  }

  #ack(attachment: Attachment, offset: number, nowMs: number): Refusal | undefined {
    if (offset > attachment.sent) {
      return { code: 'desync', message: `Cannot acknowledge ${offset}: only ${attachment.sent} was sent` }
    }
    if (offset <= attachment.acked) return undefined
    const window = attachment.window.sizeBytes
    const isLimited = attachment.sent - attachment.acked >= window || this.#isPaused
    const ackedBytes = offset - attachment.acked
    attachment.acked = offset
    attachment.ackProgressMs = nowMs
    attachment.isStalled = false
    attachment.window.acked(offset, ackedBytes, nowMs, isLimited)
    return undefined
  }

  #take(attachment: Attachment): Refusal | undefined {
    if (attachment.authority !== 'driver') {
      return { code: 'forbidden', message: `Cannot drive: this connection may be ${attachment.authority}` }
    }
    if (this.#roster.lease.holder !== attachment.id) this.#handOver(attachment)
    return undefined
  }

  #give(attachment: Attachment, to: string): Refusal | undefined {
    // A giver that has just lost the lease is late, not hostile.
    if (this.#roster.lease.holder !== attachment.id) return undefined
    const target = this.#roster.ofId(to)
    if (target === undefined || target.state.is !== 'attached' || target.authority !== 'driver' || target === attachment) return undefined
    this.#handOver(target)
    return undefined
  }

  #handOver(to: Attachment): void {
    const driver = this.#roster.driver
    if (driver !== undefined) this.#pin = driver.acked
    this.#roster.grantLease(to)
    this.#roster.tellRole(to)
    this.#roster.announce()
  }

  #ask(attachment: Attachment): void {
    const { driver } = this.#roster
    if (driver !== undefined && driver !== attachment) this.#outbox.tell(driver, { type: 'asked', by: attachment.id })
  }

  #detach(attachment: Attachment, nowMs: number): void {
    if (attachment.state.is !== 'attached') return
    const { link } = attachment.state
    const isHolder = this.#roster.lease.holder === attachment.id
    this.#dropLink(link, nowMs)
    if (isHolder) this.#roster.lease.free()
    this.#roster.forget(attachment)
    this.#roster.announce()
    this.#outbox.closeNormally(link)
  }

  #refuse(link: LinkId, refusal: Refusal, nowMs: number): void {
    const known = this.#links.get(link)
    if (known === undefined) return
    this.#outbox.refuse(link, known.rights.dialect, refusal)
    this.#dropLink(link, nowMs)
  }

  /** Forgets a connection; its attachment, if any, waits to resume. */
  #dropLink(link: LinkId, nowMs: number): void {
    if (!this.#links.delete(link)) return
    const attachment = this.#roster.ofLink(link)
    if (attachment === undefined) return
    if (this.#roster.lease.holder === attachment.id) {
      this.#pin = attachment.acked
      this.#graceUntilMs = nowMs + this.#options.limits.graceMs
      this.#roster.lease.reserve(this.#graceUntilMs)
    }
    this.#roster.unlink(attachment, nowMs)
    attachment.awaitsSnapshot = false
    if (attachment.dialect === 'plain') this.#roster.forget(attachment)
    if (this.#roster.attachedCount === 0) this.#idleSinceMs = nowMs
    this.#roster.announce()
  }

  #expireLinks(nowMs: number): void {
    const { limits } = this.#options
    for (const [link, known] of [...this.#links]) {
      if (known.rights.dialect === 'plain') continue
      const isHelloed = this.#roster.ofLink(link) !== undefined
      if (!isHelloed && nowMs >= known.sinceMs + limits.helloMs) {
        this.#refuse(link, { code: 'hello_timeout', message: 'No hello came in time' }, nowMs)
      } else if (isHelloed && nowMs >= known.lastHeardMs + limits.silenceMs) {
        this.#refuse(link, { code: 'silent', message: 'Nothing was heard for too long' }, nowMs)
      }
    }
  }

  #expireAttachments(nowMs: number): void {
    for (const attachment of [...this.#roster.all()]) {
      this.#gate.ackIfDue(attachment, nowMs)
      if (attachment.state.is === 'attached') continue
      if (nowMs >= attachment.state.sinceMs + this.#options.keepSeconds * 1000) this.#roster.forget(attachment)
    }
  }

  #noticeStall(nowMs: number): void {
    const { driver } = this.#roster
    if (driver === undefined || !this.#canStall(driver)) return
    if (nowMs >= driver.ackProgressMs + this.#options.limits.stallMs) driver.isStalled = true
  }

  #canStall(driver: Attachment): boolean {
    return this.#options.overflow === 'trim' && !driver.isStalled && driver.acked < this.#log.end
  }

  #expireSession(nowMs: number): void {
    const state = this.#state
    if (state.is === 'gone') return
    if (state.is === 'pending') {
      if (nowMs >= state.sinceMs + this.#options.limits.helloMs) this.#vanish('hello_timeout', nowMs)
      return
    }
    const keepMs = this.#options.keepSeconds * 1000
    if (this.#idleSinceMs !== null && nowMs >= this.#idleSinceMs + keepMs) this.#beginEnding(nowMs)
    if (this.#endingSinceMs !== null && nowMs >= this.#endingSinceMs + ENDING_MS) this.#vanish('session_ended', nowMs)
  }

  #beginEnding(nowMs: number): void {
    if (this.#endingSinceMs !== null || this.#state.is === 'gone') return
    this.#endingSinceMs = nowMs
    this.#outbox.push({ do: 'terminate' })
    if (this.#state.is === 'pending') this.#vanish('session_ended', nowMs)
  }

  #vanish(code: ErrorCode, nowMs: number): void {
    for (const link of [...this.#links.keys()]) this.#refuse(link, { code, message: 'The session has ended' }, nowMs)
    const wasStarted = this.#state.is !== 'pending'
    this.#state = { is: 'gone' }
    this.#outbox.push({ do: 'gone', wasStarted })
  }

  /** What follows from any change: output goes out, exits are told, the process is paused or resumed. */
  #settle(nowMs: number): readonly ServerEffect[] {
    if (this.#state.is === 'gone') return this.#outbox.take()
    const { driver } = this.#roster
    if (driver !== undefined) this.#serve(driver, nowMs)
    for (const attachment of this.#roster.all()) if (attachment !== driver) this.#serve(attachment, nowMs)
    this.#applyFlow(nowMs)
    const isOver = this.#state.is === 'exited' && this.#roster.attachedCount === 0
    const isKept = this.#endingSinceMs === null && this.#options.keepSeconds > 0
    if (isOver && !isKept) this.#vanish('session_ended', nowMs)
    else if (this.#idleSinceMs !== null && this.#options.keepSeconds === 0 && this.#state.is === 'running') this.#beginEnding(nowMs)
    return this.#outbox.take()
  }

  #serve(attachment: Attachment, nowMs: number): void {
    if (attachment.state.is !== 'attached') return
    this.#gate.ackIfDue(attachment, nowMs)
    this.#pump.pump(attachment, nowMs)
    if (attachment.dialect === 'plain' && !attachment.isBlocked) {
      attachment.acked = attachment.sent
      attachment.ackProgressMs = nowMs
    }
    this.#tellExit(attachment)
  }

  #tellExit(attachment: Attachment): void {
    if (this.#state.is !== 'exited' || attachment.state.is !== 'attached' || attachment.awaitsSnapshot) return
    if (attachment.sent !== this.#log.end) return
    const { exit } = this.#state
    const { link } = attachment.state
    if (attachment.dialect === 'plain') {
      if (attachment.isExitSent) return
      attachment.isExitSent = true
      const code = exit.code ?? 128 + (signalNumber(exit.signal ?? '') ?? 0)
      this.#outbox.push({ do: 'send', link, data: encode({ type: 'exit', code, ...(exit.signal === null ? {} : { signal: exit.signal }) }) })
      this.#outbox.closeNormally(link)
      return
    }
    if (!attachment.isExitSent) this.#outbox.tell(attachment, { type: 'exit', ...exit, outputEnd: this.#log.end })
    attachment.isExitSent = true
    if (attachment.isDone || attachment.acked !== this.#log.end) return
    attachment.isDone = true
    this.#outbox.closeNormally(link)
  }

  #applyFlow(nowMs: number): void {
    if (this.#state.is !== 'running') return
    const { driver } = this.#roster
    const isAbandoned = this.#endingSinceMs !== null && this.#roster.attachedCount === 0
    const inputs: FlowInputs = {
      log: this.#log,
      driver,
      overflow: isAbandoned ? 'trim' : this.#options.overflow,
      graceUntilMs: isAbandoned ? 0 : this.#graceUntilMs,
      pin: this.#pin,
      isPaused: this.#isPaused,
    }
    this.#log.trim(keepFrom(inputs, nowMs))
    const isPaused = shouldPause(inputs, nowMs)
    if (isPaused === this.#isPaused) return
    this.#isPaused = isPaused
    this.#outbox.push({ do: isPaused ? 'pause' : 'resume' })
  }
}
