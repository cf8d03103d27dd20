import type { Attachment, AttachmentState } from './attachment.ts'
import type { Refusal } from './effects.ts'
import type { SessionOptions } from './session-options.ts'
import type { SessionParts } from './session-parts.ts'
import { beginEnding, endSession, refuseConnection } from './teardown.ts'

/** How long an ending session waits for its process and its readers. */
const ENDING_MS = 10_000

/** Deadline of a timer that is not running. */
const NEVER = Number.POSITIVE_INFINITY

const REAUTHORIZE: Refusal = {
  code: 'reauthorise',
  message: 'The authorization must be renewed: connect again with a new credential',
}

/** Handles every timeout that has expired. */
export function expire(parts: SessionParts, nowMs: number): void {
  expireConnections(parts, nowMs)
  expireAttachments(parts, nowMs)
  detectStall(parts, nowMs)
  expireSession(parts, nowMs)
}

/** When the next timeout expires; undefined when none is running. */
export function nextExpiryMs(parts: SessionParts, nowMs: number): number | undefined {
  if (parts.lifecycle.state.kind === 'gone') return undefined
  const nextMs = Math.min(
    nextConnectionMs(parts),
    nextAttachmentMs(parts, nowMs),
    nextSessionMs(parts, nowMs),
  )
  return nextMs === NEVER ? undefined : Math.max(nowMs, nextMs)
}

function expireConnections(parts: SessionParts, nowMs: number): void {
  const { limits } = parts.options
  for (const [connectionId, known] of parts.connections.all()) {
    if (nowMs >= (known.rights.reauthorizeMs ?? NEVER)) {
      refuseConnection(parts, connectionId, REAUTHORIZE, nowMs)
      continue
    }
    const { dialect, hasSilenceTimeout = true } = known.rights
    if (dialect === 'plain') continue
    const hasAttachment = parts.attachments.byConnection(connectionId) !== undefined
    if (!hasAttachment && nowMs >= known.sinceMs + limits.helloMs) {
      refuseConnection(
        parts,
        connectionId,
        { code: 'hello_timeout', message: 'No hello was received in time' },
        nowMs,
      )
    } else if (hasAttachment && hasSilenceTimeout && nowMs >= known.lastReceivedMs + limits.silenceMs) {
      refuseConnection(
        parts,
        connectionId,
        { code: 'silent', message: 'Nothing was received for too long' },
        nowMs,
      )
    }
  }
}

function nextConnectionMs({ connections, attachments, options }: SessionParts): number {
  const { limits } = options
  let nextMs = NEVER
  for (const [connectionId, known] of connections.all()) {
    const { dialect, hasSilenceTimeout = true, reauthorizeMs = NEVER } = known.rights
    nextMs = Math.min(nextMs, reauthorizeMs)
    const hasAttachment = attachments.byConnection(connectionId) !== undefined
    if (dialect === 'plain' || (hasAttachment && !hasSilenceTimeout)) continue
    const silentMs = hasAttachment ? known.lastReceivedMs + limits.silenceMs : known.sinceMs + limits.helloMs
    nextMs = Math.min(nextMs, silentMs)
  }
  return nextMs
}

function expireAttachments({ attachments, input, options }: SessionParts, nowMs: number): void {
  for (const attachment of Array.from(attachments.all())) {
    input.ackIfDue(attachment, nowMs)
    if (attachment.state.kind === 'attached') continue
    if (nowMs < resumableUntilMs(attachment.state, options)) continue
    attachments.forget(attachment)
    attachments.presenceChanged()
  }
}

/** Until when a detached attachment can be resumed. */
function resumableUntilMs(
  { sinceMs, returnExpectedUntilMs }: Extract<AttachmentState, { kind: 'detached' }>,
  { keepSeconds }: SessionOptions,
): number {
  return Math.max(sinceMs + keepSeconds * 1000, returnExpectedUntilMs)
}

function nextAttachmentMs({ attachments, options }: SessionParts, nowMs: number): number {
  let nextMs = NEVER
  for (const attachment of attachments.all()) {
    if (attachment.state.kind === 'detached')
      nextMs = Math.min(nextMs, resumableUntilMs(attachment.state, options))
    nextMs = Math.min(nextMs, attachments.presenceDueMs(attachment) ?? NEVER)
    if (!attachment.isBlocked) nextMs = Math.min(nextMs, attachment.inputAckDueMs ?? NEVER)
    // The budget may have refilled since the attachment was throttled.
    const isThrottled = attachment.state.kind === 'attached' && attachment.isThrottled
    if (isThrottled) nextMs = Math.min(nextMs, nowMs + (attachment.bandwidth?.waitMs(1, nowMs) ?? 0))
  }
  return nextMs
}

/** In a session that trims, a driver without ack progress stops pausing the process. */
function detectStall(parts: SessionParts, nowMs: number): void {
  const { driver } = parts.attachments
  if (driver === undefined || !canStall(parts, driver)) return
  if (nowMs >= driver.ackProgressMs + parts.options.limits.stallMs) driver.isStalled = true
}

function canStall({ options, log }: SessionParts, driver: Attachment): boolean {
  const waitsForDriver = options.overflow === 'block' || driver.dialect === 'plain'
  return !waitsForDriver && !driver.isStalled && driver.acked < log.end
}

function expireSession(parts: SessionParts, nowMs: number): void {
  const { lifecycle, options } = parts
  const { state } = lifecycle
  if (state.kind === 'gone') return
  if (state.kind === 'pending') {
    if (nowMs >= state.sinceMs + options.limits.helloMs) endSession(parts, 'hello_timeout', nowMs)
    return
  }
  if (nowMs >= (lifecycle.idleEndMs(options.keepSeconds) ?? NEVER)) beginEnding(parts, nowMs)
  if (nowMs >= lifetimeEndMs(parts))
    endForTimeout(parts, `its lifetime of ${options.lifetimeSeconds} s has passed`, nowMs)
  if (nowMs >= quietEndMs(parts))
    endForTimeout(parts, `no input or output for ${options.idleSeconds} s`, nowMs)
  const { endingSinceMs } = lifecycle
  if (endingSinceMs !== null && nowMs >= endingSinceMs + ENDING_MS) endSession(parts, 'session_ended', nowMs)
}

/** When the lifetime of a running session is over. */
function lifetimeEndMs({ lifecycle, options: { lifetimeSeconds } }: SessionParts): number {
  if (lifecycle.state.kind !== 'running' || lifecycle.isOver || lifetimeSeconds === undefined) return NEVER
  return lifecycle.createdMs + lifetimeSeconds * 1000
}

/** When a running session with connections is ended because nothing happens in it. */
function quietEndMs({ lifecycle, options: { idleSeconds } }: SessionParts): number {
  const { quietSinceMs, state, isOver } = lifecycle
  if (state.kind !== 'running' || isOver || idleSeconds === undefined || quietSinceMs === undefined)
    return NEVER
  return quietSinceMs + idleSeconds * 1000
}

function endForTimeout(parts: SessionParts, reason: string, nowMs: number): void {
  const refusal: Refusal = { code: 'timed_out', message: `The session was ended: ${reason}` }
  for (const attachment of parts.attachments.all())
    if (attachment.state.kind === 'attached') parts.effects.sendWarning(attachment, refusal)
  beginEnding(parts, nowMs)
}

function nextSessionMs(parts: SessionParts, nowMs: number): number {
  const { options, attachments, flow } = parts
  const { driver } = attachments
  const canDriverStall = driver !== undefined && canStall(parts, driver)
  const stallMs = canDriverStall ? driver.ackProgressMs + options.limits.stallMs : NEVER
  const graceMs = flow.nextMs(nowMs) ?? NEVER
  return Math.min(stallMs, graceMs, nextEndMs(parts), lifetimeEndMs(parts), quietEndMs(parts))
}

/** When the session ends if nothing changes. */
function nextEndMs({ lifecycle, options }: SessionParts): number {
  const { state, endingSinceMs } = lifecycle
  const endedMs = endingSinceMs === null ? NEVER : endingSinceMs + ENDING_MS
  if (state.kind === 'pending') return Math.min(endedMs, state.sinceMs + options.limits.helloMs)
  return endingSinceMs === null ? (lifecycle.idleEndMs(options.keepSeconds) ?? NEVER) : endedMs
}
