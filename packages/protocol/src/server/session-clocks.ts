import type { ErrorCode } from '../errors.ts'
import type { Attachment, LinkState } from './attachment.ts'
import { refuseLink } from './departure.ts'
import type { Refusal } from './effects.ts'
import { beginEnding } from './ending.ts'
import type { SessionOptions } from './session-options.ts'
import type { SessionParts } from './session-parts.ts'

/** How long an ending session waits for its process and its readers before it is gone all the same. */
const ENDING_MS = 10_000

/** Of a clock that does not run. */
const NEVER = Number.POSITIVE_INFINITY

const REAUTHORIZE: Refusal = {
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
  const nextMs = Math.min(linkMs(parts), attachmentMs(parts, nowMs), sessionMs(parts, nowMs))
  return nextMs === NEVER ? undefined : Math.max(nowMs, nextMs)
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
    if (nowMs >= (known.rights.reauthorizeMs ?? NEVER)) {
      refuseLink(parts, link, REAUTHORIZE, nowMs)
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

function linkMs({ links, roster, options }: SessionParts): number {
  const { limits } = options
  let nextMs = NEVER
  for (const [link, known] of links.all()) {
    const { dialect, isRelayed = false, reauthorizeMs = NEVER } = known.rights
    nextMs = Math.min(nextMs, reauthorizeMs)
    const isHelloed = roster.ofLink(link) !== undefined
    if (dialect === 'plain' || (isHelloed && isRelayed)) continue
    const silentMs = isHelloed ? known.lastHeardMs + limits.silenceMs : known.sinceMs + limits.helloMs
    nextMs = Math.min(nextMs, silentMs)
  }
  return nextMs
}

function expireAttachments({ roster, gate, options }: SessionParts, nowMs: number): void {
  for (const attachment of Array.from(roster.all())) {
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

function attachmentMs({ roster, options }: SessionParts, nowMs: number): number {
  let nextMs = NEVER
  for (const attachment of roster.all()) {
    if (attachment.state.is === 'detached')
      nextMs = Math.min(nextMs, resumableUntilMs(attachment.state, options))
    nextMs = Math.min(nextMs, roster.presenceDueMs(attachment) ?? NEVER)
    if (!attachment.isBlocked) nextMs = Math.min(nextMs, attachment.inputAckDueMs ?? NEVER)
    // Time has passed since it was found to be throttled, so that it may not be any more.
    const isThrottled = attachment.state.is === 'attached' && attachment.isThrottled
    if (isThrottled) nextMs = Math.min(nextMs, nowMs + (attachment.bandwidth?.waitMs(1, nowMs) ?? 0))
  }
  return nextMs
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
  if (nowMs >= (life.idleEndMs(options.keepSeconds) ?? NEVER)) beginEnding(parts, nowMs)
  const { endingSinceMs } = life
  if (endingSinceMs !== null && nowMs >= endingSinceMs + ENDING_MS) vanish(parts, 'session_ended', nowMs)
}

function sessionMs(parts: SessionParts, nowMs: number): number {
  const { options, roster, valve } = parts
  const { driver } = roster
  const canDriverStall = driver !== undefined && canStall(parts, driver)
  const stallMs = canDriverStall ? driver.ackProgressMs + options.limits.stallMs : NEVER
  const graceMs = valve.nextMs(nowMs) ?? NEVER
  return Math.min(stallMs, graceMs, lifeMs(parts))
}

/** When the session ends, or is given up, as things stand. */
function lifeMs({ life, options }: SessionParts): number {
  const { state, endingSinceMs } = life
  const endedMs = endingSinceMs === null ? NEVER : endingSinceMs + ENDING_MS
  if (state.is === 'pending') return Math.min(endedMs, state.sinceMs + options.limits.helloMs)
  return endingSinceMs === null ? (life.idleEndMs(options.keepSeconds) ?? NEVER) : endedMs
}
