import type { Hello, Role } from '../client-frames.ts'
import { MAX_WINDOW_BYTES } from '../limits.ts'
import { findRestrictedVariable } from '../terminal-variables.ts'
import { COMPATIBLE_FROM, PROTOCOL_VERSION } from '../version.ts'
import { type Attachment, createAttachment, lesserRole } from './attachment.ts'
import { resizeTerminal } from './control-messages.ts'
import { replaceConnection } from './teardown.ts'
import type { ConnectionId, Refusal } from './effects.ts'
import type { ConnectionRights } from './connection-table.ts'
import { checkAttachmentLimit, checkConnectionLimit } from './attachment-limit.ts'
import type { SessionParts } from './session-parts.ts'

/** Environment and terminal size of a process to start. */
export interface StartParameters {
  readonly env: Readonly<Record<string, string>>
  readonly cols: number
  readonly rows: number
}

/** A connection without an attachment. */
interface NewConnection {
  readonly connectionId: ConnectionId
  readonly rights: ConnectionRights
}

const SESSION_GONE: Refusal = { code: 'session_gone', message: 'Cannot attach: the session has ended' }

/** Refuses connections that cannot attach whatever their hello says. */
export function checkConnection(
  parts: SessionParts,
  rights: ConnectionRights,
  nowMs: number,
): Refusal | undefined {
  const { lifecycle } = parts
  if (lifecycle.isOver) return SESSION_GONE
  if (rights.dialect === 'plain' && lifecycle.state.kind !== 'pending') {
    return { code: 'needs_v1', message: 'Cannot join a session without the subprotocol "sandwire.v1"' }
  }
  return checkConnectionLimit(parts, rights, nowMs)
}

function refuseEnvironment(
  rights: ConnectionRights,
  env: Readonly<Record<string, string>>,
): Refusal | undefined {
  if (rights.exec === true) return undefined
  const name = findRestrictedVariable(env)
  if (name === undefined) return undefined
  return {
    code: 'forbidden',
    message: `Cannot set "${name}": this connection may not choose the environment`,
  }
}

/** Starts the process, unless it was started before. */
export function startProcess(parts: SessionParts, start: StartParameters): void {
  const { lifecycle, resizes, effects } = parts
  if (lifecycle.state.kind !== 'pending') return
  lifecycle.run()
  resizes.record(0, start.cols, start.rows)
  effects.push({ do: 'start', env: start.env, cols: start.cols, rows: start.rows })
}

/** Attaches a plain client, which sends no hello and drives the session it creates. */
export function admitPlain(
  parts: SessionParts,
  opening: NewConnection,
  start: StartParameters,
  nowMs: number,
): void {
  startProcess(parts, start)
  const identity = `plain-${opening.connectionId}`
  admit(parts, opening, { identity, attempt: 0, name: '', window: MAX_WINDOW_BYTES, role: 'driver' }, nowMs)
}

/** Handles a hello: resumes the attachment it names, or creates one. A refusal ends the connection. */
export function handleHello(
  parts: SessionParts,
  opening: NewConnection,
  hello: Hello,
  nowMs: number,
): Refusal | undefined {
  const { authority } = opening.rights
  // The session may have begun to end since the connection was opened.
  if (parts.lifecycle.isOver) return SESSION_GONE
  if (hello.version < COMPATIBLE_FROM || hello.version > PROTOCOL_VERSION) {
    return {
      code: 'version_unsupported',
      message: `Cannot talk version ${hello.version}: this side has ${COMPATIBLE_FROM} to ${PROTOCOL_VERSION}`,
    }
  }
  if (hello.role !== undefined && lesserRole(hello.role, authority) !== hello.role) {
    return { code: 'forbidden', message: `Cannot become ${hello.role}: this connection may be ${authority}` }
  }
  const known = parts.attachments.byIdentity(hello.identity)
  if (known !== undefined) return resume(parts, opening, known, hello, nowMs)
  if (hello.resuming || parts.attachments.isRetired(hello.identity)) {
    return { code: 'resume_lost', message: 'Cannot resume: the attachment is no longer known' }
  }
  return (
    refuseEnvironment(opening.rights, hello.env ?? {}) ??
    checkAttachmentLimit(parts, opening.rights, nowMs) ??
    join(parts, opening, hello, nowMs)
  )
}

function join(parts: SessionParts, opening: NewConnection, hello: Hello, nowMs: number): undefined {
  const { lifecycle, attachments, pump, input, options } = parts
  const isFirst = lifecycle.state.kind === 'pending'
  const { authority, defaultRole = authority, waits = false } = opening.rights
  if (!waits) startProcess(parts, { env: hello.env ?? {}, cols: hello.cols, rows: hello.rows })
  const role = hello.role ?? lesserRole(defaultRole, authority)
  const attachment = admit(
    parts,
    opening,
    { ...hello, attempt: hello.attempt ?? 0, name: hello.name ?? '', role },
    nowMs,
  )
  const setsSize = attachment.role === 'driver' && !isFirst && options.sizeFrom !== 'process'
  if (setsSize) resizeTerminal(parts, hello.cols, hello.rows)
  sendWelcome(parts, attachment)
  const hasSnapshot = opening.rights.outputFrom !== 'end' && !attachment.isAgent
  if (options.mode === 'pty' && !isFirst && hasSnapshot) {
    attachment.base = Number.POSITIVE_INFINITY
    pump.requestSnapshot(attachment)
  }
  input.repeatStdinClosed(attachment)
  attachments.presenceChanged()
}

function admit(
  parts: SessionParts,
  { connectionId, rights }: NewConnection,
  requested: { identity: string; attempt: number; name: string; window: number; role: Role },
  nowMs: number,
): Attachment {
  const { attachments, resizes, options, lifecycle, log } = parts
  const roleWithoutLease = rights.roleWithoutLease ?? 'viewer'
  const mayTake = rights.take && attachments.driver?.dialect !== 'plain'
  const drives = requested.role === 'driver' && (mayTake || attachments.lease.isClaimable(nowMs))
  const attachment = createAttachment({
    id: attachments.mintId(),
    identity: requested.identity,
    attempt: requested.attempt,
    principal: rights.principal,
    dialect: rights.dialect,
    acknowledgement: rights.dialect === 'plain' ? 'connection' : (rights.acknowledgement ?? 'client'),
    skipsBacklog: rights.skipsBacklog === true && options.mode === 'pty' && options.overflow === 'trim',
    roleWithoutLease,
    login: rights.login,
    grant: rights.grant,
    name: rights.name ?? requested.name,
    isAgent: rights.isAgent === true,
    authority: rights.authority,
    role: requested.role === 'driver' ? roleWithoutLease : requested.role,
    connectionId,
    from: rights.outputFrom === 'end' || rights.isAgent === true ? log.end : 0,
    resizeSerial: resizes.current.serial,
    windowBytes: requested.window,
    bandwidth: rights.bandwidth,
    limits: options.limits,
    nowMs,
  })
  attachments.add(attachment)
  lifecycle.markActive(nowMs)
  if (drives) attachments.grantLease(attachment)
  return attachment
}

function resume(
  parts: SessionParts,
  { connectionId, rights }: NewConnection,
  attachment: Attachment,
  hello: Hello,
  nowMs: number,
): Refusal | undefined {
  const { attachments, resizes, pump, input, lifecycle } = parts
  // What was withheld from an agent must not be sent to it again.
  if (attachment.principal !== rights.principal || attachment.isAgent) {
    return { code: 'resume_lost', message: 'Cannot resume: the attachment is no longer known' }
  }
  if (hello.attempt !== undefined && hello.attempt <= attachment.attempt) {
    return { code: 'replaced', message: 'This attachment already has a newer connection' }
  }
  if (hello.received > attachment.sentMax) {
    return {
      code: 'desync',
      message: `Cannot resume at ${hello.received}: only ${attachment.sentMax} was sent`,
    }
  }
  const previous = attachments.reconnect(attachment, connectionId)
  if (previous !== undefined) replaceConnection(parts, previous)
  lifecycle.markActive(nowMs)
  attachment.attempt = hello.attempt ?? attachment.attempt
  attachment.authority = rights.authority
  attachment.login = rights.login
  attachment.grant = rights.grant
  attachment.bandwidth = rights.bandwidth ?? attachment.bandwidth
  const role = lesserRole(attachment.role, rights.authority)
  if (role !== attachment.role) {
    if (attachments.lease.holder === attachment.id) attachments.lease.free()
    attachment.role = role
  }
  attachment.ignoreInputUntilEpoch = undefined
  attachment.isBlocked = false
  attachment.outputPhase = 'streaming'
  attachment.isStalled = false
  attachment.ackProgressMs = nowMs
  attachment.pendingPongId = undefined
  attachment.presence = { version: 0, atMs: Number.NEGATIVE_INFINITY }
  attachment.sent = hello.received
  attachment.acked = Math.min(attachment.acked, hello.received)
  attachment.resizeSerial = resizes.sizeAt(hello.received).serial
  attachment.window.restart(hello.window)
  sendWelcome(parts, attachment)
  if (hello.received < attachment.base) pump.requestSnapshot(attachment)
  input.repeatStdinClosed(attachment)
  attachments.presenceChanged()
  return undefined
}

/** Sends the welcome, which says where both streams continue. */
function sendWelcome({ options, effects, resizes, attachments }: SessionParts, attachment: Attachment): void {
  const { cols, rows } = resizes.sizeAt(attachment.sent)
  attachment.inputAckSent = { at: attachment.inputSettled, seq: attachment.controlSeq }
  attachment.inputAckDueMs = undefined
  effects.send(attachment, {
    type: 'welcome',
    version: PROTOCOL_VERSION,
    session: options.id,
    attachment: attachment.id,
    role: attachment.role,
    authority: attachment.authority,
    epoch: attachments.lease.epoch,
    mode: options.mode,
    output: attachment.sent,
    input: { at: attachment.inputAccepted, seq: attachment.controlSeq },
    inputWindow: options.limits.inputWindowBytes,
    keepSeconds: options.keepSeconds,
    cols,
    rows,
  })
  effects.send(attachment, { type: 'ack', input: attachment.inputSettled, seq: attachment.controlSeq })
}
