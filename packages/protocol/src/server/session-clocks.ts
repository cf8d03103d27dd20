import type { ErrorCode } from '../errors.ts'
import type { Attachment, LinkState } from './attachment.ts'
import { refuseLink } from './departure.ts'
import type { Refusal } from './effects.ts'
import { beginEnding } from './ending.ts'
import type { SessionOptions } from './session-options.ts'
import type { SessionParts } from './session-parts.ts'

/** How long an ending session waits for its process and its readers before it is gone all the same. */
const ENDING_MS = 10_000

const REAUTHORISE: Refusal = {
  code: 'reauthorise',
  message: 'Cannot stay attached: the right to be here has to be shown again',
}

/** Acts on every clock that has run out. */
export function expire(parts: SessionParts, nowMs: number): void {
  expireLinks(parts, nowMs)
  expireAttachments(parts, nowMs)
  noticeStall(parts, nowMs)
  expireSession(parts, nowMs)
}

/** When the next clock runs out; undefined when none runs. */
export function nextExpiryMs(parts: SessionParts, nowMs: number): number | undefined {
  if (parts.life.state.is === 'gone') return undefined
  const times = [...linkTimes(parts), ...attachmentTimes(parts, nowMs), ...sessionTimes(parts, nowMs)]
  return times.length === 0 ? undefined : Math.max(nowMs, Math.min(...times))
}

/** The session is over; whoever is still connected is told why. */
export function vanish(parts: SessionParts, code: ErrorCode, nowMs: number): void {
  const { links, life, outbox } = parts
  for (const [link] of links.all()) refuseLink(parts, link, { code, message: 'The session has ended' }, nowMs)
  const wasStarted = life.state.is !== 'pending'
  life.vanish()
  outbox.push({ do: 'gone', wasStarted })
}

function expireLinks(parts: SessionParts, nowMs: number): void {
  const { limits } = parts.options
  for (const [link, known] of parts.links.all()) {
    if (nowMs >= (known.rights.reauthoriseMs ?? Number.POSITIVE_INFINITY)) {
      refuseLink(parts, link, REAUTHORISE, nowMs)
      continue
    }
    const { dialect, isRelayed = false } = known.rights
    if (dialect === 'plain') continue
    const isHelloed = parts.roster.ofLink(link) !== undefined
    if (!isHelloed && nowMs >= known.sinceMs + limits.helloMs) {
      refuseLink(parts, link, { code: 'hello_timeout', message: 'No hello came in time' }, nowMs)
    } else if (isHelloed && !isRelayed && nowMs >= known.lastHeardMs + limits.silenceMs) {
      refuseLink(parts, link, { code: 'silent', message: 'Nothing was heard for too long' }, nowMs)
    }
  }
}

function linkTimes({ links, roster, options }: SessionParts): number[] {
  const { limits } = options
  const times: number[] = []
  for (const [link, known] of links.all()) {
    if (known.rights.reauthoriseMs !== undefined) times.push(known.rights.reauthoriseMs)
    const { dialect, isRelayed = false } = known.rights
    const isHelloed = roster.ofLink(link) !== undefined
    if (dialect === 'plain' || (isHelloed && isRelayed)) continue
    times.push(isHelloed ? known.lastHeardMs + limits.silenceMs : known.sinceMs + limits.helloMs)
  }
  return times
}

function expireAttachments({ roster, gate, options }: SessionParts, nowMs: number): void {
  for (const attachment of [...roster.all()]) {
    gate.ackIfDue(attachment, nowMs)
    if (attachment.state.is === 'attached') continue
    if (nowMs < resumableUntilMs(attachment.state, options)) continue
    roster.forget(attachment)
    roster.announce()
  }
}

/** Until when an attachment without a connection may come back. */
function resumableUntilMs(
  { sinceMs, awaitedMs }: Extract<LinkState, { is: 'detached' }>,
  { keepSeconds }: SessionOptions,
): number {
  return Math.max(sinceMs + keepSeconds * 1000, awaitedMs)
}

function attachmentTimes({ roster, options }: SessionParts, nowMs: number): number[] {
  const times: number[] = []
  for (const attachment of roster.all()) {
    if (attachment.state.is === 'detached') times.push(resumableUntilMs(attachment.state, options))
    const presenceMs = roster.presenceDueMs(attachment)
    if (presenceMs !== undefined) times.push(presenceMs)
    if (attachment.inputAckDueMs !== undefined && !attachment.isBlocked) times.push(attachment.inputAckDueMs)
    // Time has passed since it was found to be throttled, so that it may not be any more.
    const isThrottled = attachment.state.is === 'attached' && attachment.isThrottled
    if (isThrottled) times.push(nowMs + (attachment.bandwidth?.waitMs(1, nowMs) ?? 0))
  }
  return times
}

/** A driver that consumes nothing no longer holds the program of a trimming session back. */
function noticeStall(parts: SessionParts, nowMs: number): void {
  const { driver } = parts.roster
  if (driver === undefined || !canStall(parts, driver)) return
  if (nowMs >= driver.ackProgressMs + parts.options.limits.stallMs) driver.isStalled = true
}

function canStall({ options, log }: SessionParts, driver: Attachment): boolean {
  const isPatient = options.overflow === 'block' || driver.dialect === 'plain'
  return !isPatient && !driver.isStalled && driver.acked < log.end
}

function expireSession(parts: SessionParts, nowMs: number): void {
  const { life, options } = parts
  const { state } = life
  if (state.is === 'gone') return
  if (state.is === 'pending') {
    if (nowMs >= state.sinceMs + options.limits.helloMs) vanish(parts, 'hello_timeout', nowMs)
    return
  }
  if (nowMs >= (life.idleEndMs(options.keepSeconds) ?? Number.POSITIVE_INFINITY)) beginEnding(parts, nowMs)
  const { endingSinceMs } = life
  if (endingSinceMs !== null && nowMs >= endingSinceMs + ENDING_MS) vanish(parts, 'session_ended', nowMs)
}

function sessionTimes(parts: SessionParts, nowMs: number): number[] {
  const { life, options, roster, valve } = parts
  const times: number[] = []
  const { driver } = roster
  if (driver !== undefined && canStall(parts, driver))
    times.push(driver.ackProgressMs + options.limits.stallMs)
  const graceMs = valve.nextMs(nowMs)
  if (graceMs !== undefined) times.push(graceMs)
  const { state, endingSinceMs } = life
  const idleEndMs = life.idleEndMs(options.keepSeconds)
  if (state.is === 'pending') times.push(state.sinceMs + options.limits.helloMs)
  else if (idleEndMs !== undefined && endingSinceMs === null) times.push(idleEndMs)
  if (endingSinceMs !== null) times.push(endingSinceMs + ENDING_MS)
  return times
}
