import type { ClientMessage } from '../client-frames.ts'
import type { Attachment } from './attachment.ts'
import type { Refusal } from './effects.ts'
import type { SessionParts } from './session-parts.ts'

/** Acts on a message about the lease. A refusal ends the connection. */
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

/** An attachment takes the lease, from whoever has it. */
function take(parts: SessionParts, attachment: Attachment, nowMs: number): Refusal | undefined {
  if (attachment.authority !== 'driver') {
    return { code: 'forbidden', message: `Cannot drive: this connection may be ${attachment.authority}` }
  }
  if (parts.attachments.driver?.dialect === 'plain') {
    return { code: 'forbidden', message: 'Cannot drive: a plain client keeps the session it created' }
  }
  if (parts.attachments.lease.holder !== attachment.id) handOver(parts, attachment, nowMs)
  return undefined
}

/** The driver hands the lease to another attachment, if that one is there and may drive. */
function give(parts: SessionParts, attachment: Attachment, to: string, nowMs: number): void {
  // A giver that has just lost the lease is late, not hostile.
  if (parts.attachments.lease.holder !== attachment.id) return
  const target = parts.attachments.byId(to)
  if (target === undefined || target.state.is !== 'attached' || target.authority !== 'driver') return
  if (target !== attachment) handOver(parts, target, nowMs)
}

/** An attachment asks the driver to hand over. Where nobody has the lease, nor is it kept for anybody, it is the asker's. */
function ask(parts: SessionParts, attachment: Attachment, nowMs: number): void {
  const { attachments, effects } = parts
  const { driver } = attachments
  if (attachments.lease.holder === null && attachment.authority === 'driver') {
    handOver(parts, attachment, nowMs)
    return
  }
  if (driver !== undefined && driver !== attachment && !driver.isBlocked)
    effects.send(driver, { type: 'asked', by: attachment.id })
}

function handOver({ attachments, flow }: SessionParts, to: Attachment, nowMs: number): void {
  const { driver } = attachments
  if (driver !== undefined) flow.retainFrom(driver.acked)
  // A new driver has its own time to show progress.
  to.ackProgressMs = nowMs
  to.isStalled = false
  attachments.grantLease(to)
  attachments.sendRole(to)
  attachments.presenceChanged()
}
