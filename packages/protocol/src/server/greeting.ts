import type { Hello, Role } from '../client-frames.ts'
import { MAX_WINDOW_BYTES } from '../limits.ts'
import { COMPATIBLE_FROM, PROTOCOL_VERSION } from '../version.ts'
import { type Attachment, createAttachment, lesserRole } from './attachment.ts'
import { resizeTo } from './controls.ts'
import { replaceLink } from './departure.ts'
import type { LinkId, Refusal } from './effects.ts'
import type { LinkRights } from './link-table.ts'
import type { SessionParts } from './session-parts.ts'

/** Environment and size for the process that a first hello starts. */
export interface StartParameters {
  readonly env: Readonly<Record<string, string>>
  readonly cols: number
  readonly rows: number
}

/** A connection that introduces itself. */
interface Newcomer {
  readonly link: LinkId
  readonly rights: LinkRights
}

/** Starts the process, unless that was done before. */
export function startProcess(parts: SessionParts, start: StartParameters, nowMs: number): void {
  const { life, valve, resizes, outbox } = parts
  if (life.state.is !== 'pending') return
  life.run()
  valve.beginGrace(nowMs)
  resizes.record(0, start.cols, start.rows)
  outbox.push({ do: 'start', env: start.env, cols: start.cols, rows: start.rows })
}

/** A plain connection needs no hello: it is the driver of the session it creates. */
export function greetPlain(
  parts: SessionParts,
  newcomer: Newcomer,
  start: StartParameters,
  nowMs: number,
): void {
  startProcess(parts, start, nowMs)
  const identity = `plain-${newcomer.link}`
  admit(parts, newcomer, { identity, name: '', window: MAX_WINDOW_BYTES, role: 'driver' }, nowMs)
}

/** Answers a hello: resumes the attachment it names, or admits a new one. A refusal ends the connection. */
export function greet(
  parts: SessionParts,
  newcomer: Newcomer,
  hello: Hello,
  nowMs: number,
): Refusal | undefined {
  const { authority } = newcomer.rights
  if (hello.version < COMPATIBLE_FROM || hello.version > PROTOCOL_VERSION) {
    return {
      code: 'version_unsupported',
      message: `Cannot talk version ${hello.version}: this side has ${COMPATIBLE_FROM} to ${PROTOCOL_VERSION}`,
    }
  }
  if (hello.role !== undefined && lesserRole(hello.role, authority) !== hello.role) {
    return { code: 'forbidden', message: `Cannot become ${hello.role}: this connection may be ${authority}` }
  }
  const known = parts.roster.ofIdentity(hello.identity)
  if (known !== undefined) return resume(parts, newcomer, known, hello, nowMs)
  if (hello.resuming) {
    return { code: 'resume_lost', message: 'Cannot resume: the attachment is not known any more' }
  }
  return makeRoom(parts) ?? join(parts, newcomer, hello, nowMs)
}

function join(parts: SessionParts, newcomer: Newcomer, hello: Hello, nowMs: number): undefined {
  const { life, roster, pump, gate, options } = parts
  const isFirst = life.state.is === 'pending'
  startProcess(parts, { env: hello.env ?? {}, cols: hello.cols, rows: hello.rows }, nowMs)
  const role = hello.role ?? newcomer.rights.authority
  const attachment = admit(parts, newcomer, { ...hello, name: hello.name ?? '', role }, nowMs)
  if (attachment.role === 'driver' && !isFirst) resizeTo(parts, hello.cols, hello.rows)
  welcome(parts, attachment)
  if (options.mode === 'pty' && !isFirst) {
    attachment.base = Number.POSITIVE_INFINITY
    pump.askSnapshot(attachment)
  }
  gate.remind(attachment)
  roster.announce()
}

function admit(
  parts: SessionParts,
  { link, rights }: Newcomer,
  wanted: { identity: string; name: string; window: number; role: Role },
  nowMs: number,
): Attachment {
  const { roster, resizes, options, life } = parts
  const drives = wanted.role === 'driver' && (rights.take || roster.lease.isClaimable(nowMs))
  const attachment = createAttachment({
    id: roster.mintId(),
    identity: wanted.identity,
    principal: rights.principal,
    dialect: rights.dialect,
    name: wanted.name,
    authority: rights.authority,
    role: wanted.role === 'driver' ? 'viewer' : wanted.role,
    link,
    from: 0,
    resizeSerial: resizes.current.serial,
    windowBytes: wanted.window,
    limits: options.limits,
    nowMs,
  })
  roster.add(attachment)
  life.occupy()
  if (drives) roster.grantLease(attachment)
  return attachment
}

function resume(
  parts: SessionParts,
  { link, rights }: Newcomer,
  attachment: Attachment,
  hello: Hello,
  nowMs: number,
): Refusal | undefined {
  const { roster, resizes, pump, gate, life } = parts
  if (attachment.principal !== rights.principal) {
    return { code: 'resume_lost', message: 'Cannot resume: the attachment is not known any more' }
  }
  if (hello.received > attachment.sentMax) {
    return {
      code: 'desync',
      message: `Cannot resume at ${hello.received}: only ${attachment.sentMax} was sent`,
    }
  }
  const previous = roster.relink(attachment, link)
  if (previous !== undefined) replaceLink(parts, previous)
  life.occupy()
  attachment.authority = rights.authority
  const role = lesserRole(attachment.role, rights.authority)
  if (role !== attachment.role) {
    roster.lease.free()
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
  attachment.resizeSerial = resizes.sizeAt(hello.received).serial
  attachment.window.restart()
  welcome(parts, attachment)
  if (hello.received < attachment.base) pump.askSnapshot(attachment)
  gate.remind(attachment)
  roster.announce()
  return undefined
}

/** Says where both streams continue. */
function welcome({ options, outbox, resizes, roster }: SessionParts, attachment: Attachment): void {
  const { cols, rows } = resizes.sizeAt(attachment.sent)
  attachment.inputAckSent = { at: attachment.inputSettled, seq: attachment.controlSeq }
  attachment.inputAckDueMs = undefined
  outbox.tell(attachment, {
    type: 'welcome',
    version: PROTOCOL_VERSION,
    session: options.id,
    attachment: attachment.id,
    role: attachment.role,
    authority: attachment.authority,
    epoch: roster.lease.epoch,
    mode: options.mode,
    output: attachment.sent,
    input: { at: attachment.inputAccepted, seq: attachment.controlSeq },
    inputWindow: options.limits.inputWindowBytes,
    keepSeconds: options.keepSeconds,
    cols,
    rows,
  })
  outbox.tell(attachment, { type: 'ack', input: attachment.inputSettled, seq: attachment.controlSeq })
}

/** Room for one more attachment: the longest-gone one that does not drive makes way. */
function makeRoom({ roster, options }: SessionParts): Refusal | undefined {
  if (roster.size < options.limits.maxAttachments) return undefined
  for (const attachment of roster.all()) {
    if (attachment.state.is === 'attached' || attachment.id === roster.lease.holder) continue
    roster.forget(attachment)
    return undefined
  }
  return {
    code: 'too_many_attachments',
    message: `Cannot attach: the session has ${roster.size} attachments`,
  }
}
