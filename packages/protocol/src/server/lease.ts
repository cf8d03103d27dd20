import type { ClientMessage } from '../client-frames.ts'
import type { Attachment } from './attachment.ts'
import type { Refusal } from './effects.ts'
import type { SessionParts } from './session-parts.ts'

/** The right to drive, held by at most one attachment. Every change of holder starts a new epoch. */
export class Lease {
  #holder: string | null = null
  #epoch = 0
  /** While the holder is disconnected, the lease is reserved for it until this time. */
  #reservedUntilMs: number | null = null

  /** Attachment that drives, or for which the lease is reserved. */
  get holder(): string | null {
    return this.#holder
  }

  get epoch(): number {
    return this.#epoch
  }

  get reservedUntilMs(): number | null {
    return this.#reservedUntilMs
  }

  /** True when the lease is free or its reservation has expired. */
  isClaimable(nowMs: number): boolean {
    return this.#holder === null || (this.#reservedUntilMs !== null && nowMs >= this.#reservedUntilMs)
  }

  grant(holder: string): void {
    this.#holder = holder
    this.#reservedUntilMs = null
    this.#epoch += 1
  }

  /** The holder has disconnected. */
  reserve(untilMs: number): void {
    this.#reservedUntilMs = untilMs
  }

  /** The holder has reconnected. */
  confirm(): void {
    this.#reservedUntilMs = null
  }

  free(): void {
    if (this.#holder === null) return
    this.#holder = null
    this.#reservedUntilMs = null
    this.#epoch += 1
  }
}

/** Handles `take`, `give` and `ask`. A refusal ends the connection. */
export function handleLeaseMessage(
  parts: SessionParts,
  attachment: Attachment,
  message: Extract<ClientMessage, { type: 'take' | 'give' | 'ask' }>,
  nowMs: number,
): Refusal | undefined {
  if (!attachment.leaseMoves.take(1, nowMs)) {
    return { code: 'rate_limited', message: 'Cannot move the lease that often' }
  }
  switch (message.type) {
    case 'take':
      return take(parts, attachment, nowMs)
    case 'give':
      give(parts, attachment, message.to, nowMs)
      return undefined
    case 'ask':
      ask(parts, attachment, nowMs)
      return undefined
  }
}

/** Takes the lease, also from another holder. */
function take(parts: SessionParts, attachment: Attachment, nowMs: number): Refusal | undefined {
  if (attachment.authority !== 'driver') {
    return { code: 'forbidden', message: `Cannot drive: this connection may be ${attachment.authority}` }
  }
  if (parts.attachments.driver?.dialect === 'plain') {
    return { code: 'forbidden', message: 'Cannot drive: a plain client keeps the session it created' }
  }
  if (parts.attachments.lease.holder !== attachment.id) transferLease(parts, attachment, nowMs)
  return undefined
}

/** Gives the lease to another attachment if that one is connected and may drive. */
function give(parts: SessionParts, attachment: Attachment, to: string, nowMs: number): void {
  // An attachment that has just lost the lease may not know yet, so this is no error.
  if (parts.attachments.lease.holder !== attachment.id) return
  const target = parts.attachments.byId(to)
  if (target === undefined || target.state.kind !== 'attached' || target.authority !== 'driver') return
  if (target !== attachment) transferLease(parts, target, nowMs)
}

/** Asks the driver to give the lease. A lease without holder is granted at once. */
function ask(parts: SessionParts, attachment: Attachment, nowMs: number): void {
  const { attachments, effects } = parts
  const { driver } = attachments
  if (attachments.lease.holder === null && attachment.authority === 'driver') {
    transferLease(parts, attachment, nowMs)
    return
  }
  if (driver !== undefined && driver !== attachment && !driver.isBlocked)
    effects.send(driver, { type: 'asked', by: attachment.id })
}

function transferLease({ attachments, flow }: SessionParts, to: Attachment, nowMs: number): void {
  const { driver } = attachments
  if (driver !== undefined) flow.retainFrom(driver.acked)
  // A new driver gets the full time to show progress.
  to.ackProgressMs = nowMs
  to.isStalled = false
  attachments.grantLease(to)
  attachments.sendRole(to)
  attachments.presenceChanged()
}
