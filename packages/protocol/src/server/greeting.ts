import type { Hello, Role } from '../client-frames.ts'
import { MAX_WINDOW_BYTES } from '../limits.ts'
import { findFreeVariable } from '../terminal-env.ts'
import { COMPATIBLE_FROM, PROTOCOL_VERSION } from '../version.ts'
import { type Attachment, createAttachment, lesserRole, roleWithoutLease } from './attachment.ts'
import { resizeTo } from './controls.ts'
import { replaceLink } from './departure.ts'
import type { LinkId, Refusal } from './effects.ts'
import type { LinkRights } from './link-table.ts'
import { makeRoom, makeRoomForLink } from './seats.ts'
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

/** Why a connection cannot even say hello. */
export function refuseConnection(
  parts: SessionParts,
  rights: LinkRights,
  nowMs: number,
): Refusal | undefined {
  const { life } = parts
  if (life.state.is === 'gone')
    return { code: 'session_gone', message: 'Cannot attach: the session has ended' }
  if (rights.dialect === 'plain' && life.state.is !== 'pending') {
    return { code: 'needs_v1', message: 'Cannot join a session without the subprotocol "sandwire.v1"' }
  }
  return makeRoomForLink(parts, rights, nowMs)
}

function refuseEnvironment(rights: LinkRights, env: Readonly<Record<string, string>>): Refusal | undefined {
  if (rights.exec === true) return undefined
  const name = findFreeVariable(env)
  if (name === undefined) return undefined
  return {
    code: 'forbidden',
    message: `Cannot set "${name}": this connection may not choose the environment`,
  }
}

/** Starts the process, unless that was done before. */
export function startProcess(parts: SessionParts, start: StartParameters): void {
  const { life, resizes, outbox } = parts
  if (life.state.is !== 'pending') return
  life.run()
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
  startProcess(parts, start)
  const identity = `plain-${newcomer.link}`
  admit(parts, newcomer, { identity, attempt: 0, name: '', window: MAX_WINDOW_BYTES, role: 'driver' }, nowMs)
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
  if (hello.resuming || parts.roster.isRetired(hello.identity)) {
    return { code: 'resume_lost', message: 'Cannot resume: the attachment is not known any more' }
  }
  return (
    refuseEnvironment(newcomer.rights, hello.env ?? {}) ??
    makeRoom(parts, newcomer.rights, nowMs) ??
    join(parts, newcomer, hello, nowMs)
  )
}

function join(parts: SessionParts, newcomer: Newcomer, hello: Hello, nowMs: number): undefined {
  const { life, roster, pump, gate, options } = parts
  const isFirst = life.state.is === 'pending'
  const { authority, usualRole = authority, waits = false } = newcomer.rights
  if (!waits) startProcess(parts, { env: hello.env ?? {}, cols: hello.cols, rows: hello.rows })
  const role = hello.role ?? lesserRole(usualRole, authority)
  const attachment = admit(
    parts,
    newcomer,
    { ...hello, attempt: hello.attempt ?? 0, name: hello.name ?? '', role },
    nowMs,
  )
  if (attachment.role === 'driver' && !isFirst) resizeTo(parts, hello.cols, hello.rows)
  welcome(parts, attachment)
  if (options.mode === 'pty' && !isFirst && !attachment.isRelayed) {
    attachment.base = Number.POSITIVE_INFINITY
    pump.askSnapshot(attachment)
  }
  gate.remind(attachment)
  roster.announce()
}

function admit(
  parts: SessionParts,
  { link, rights }: Newcomer,
  wanted: { identity: string; attempt: number; name: string; window: number; role: Role },
  nowMs: number,
): Attachment {
  const { roster, resizes, options, life, log } = parts
  const isRelayed = rights.isRelayed === true
  const mayTake = rights.take && roster.driver?.dialect !== 'plain'
  const drives = wanted.role === 'driver' && (mayTake || roster.lease.isClaimable(nowMs))
  const attachment = createAttachment({
    id: roster.mintId(),
    identity: wanted.identity,
    attempt: wanted.attempt,
    principal: rights.principal,
    dialect: rights.dialect,
    isRelayed,
    login: rights.login,
    grant: rights.grant,
    name: rights.name ?? wanted.name,
    authority: rights.authority,
    role: wanted.role === 'driver' ? roleWithoutLease({ isRelayed }) : wanted.role,
    link,
    from: isRelayed ? log.end : 0,
    resizeSerial: resizes.current.serial,
    windowBytes: wanted.window,
    bandwidth: rights.bandwidth,
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
  if (hello.attempt !== undefined && hello.attempt <= attachment.attempt) {
    return { code: 'replaced', message: 'A newer connection of this attachment is there already' }
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
  attachment.attempt = hello.attempt ?? attachment.attempt
  attachment.authority = rights.authority
  attachment.login = rights.login
  attachment.grant = rights.grant
  attachment.bandwidth = rights.bandwidth ?? attachment.bandwidth
  const role = lesserRole(attachment.role, rights.authority)
  if (role !== attachment.role) {
    if (roster.lease.holder === attachment.id) roster.lease.free()
    attachment.role = role
  }
  attachment.deafUntilEpoch = undefined
  attachment.isBlocked = false
  attachment.isExitSent = false
  attachment.isDone = false
  attachment.isStalled = false
  attachment.ackProgressMs = nowMs
  attachment.awaitsSnapshot = false
  attachment.pongOwed = undefined
  attachment.presence = { told: 0, atMs: Number.NEGATIVE_INFINITY }
  attachment.sent = hello.received
  attachment.acked = Math.min(attachment.acked, hello.received)
  attachment.resizeSerial = resizes.sizeAt(hello.received).serial
  attachment.window.restart(hello.window)
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
