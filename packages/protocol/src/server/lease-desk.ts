import type { Attachment } from './attachment.ts'
import type { Refusal } from './effects.ts'
import type { SessionParts } from './session-parts.ts'

/** An attachment takes the lease, from whoever has it. */
export function takeLease(parts: SessionParts, attachment: Attachment): Refusal | undefined {
  if (attachment.authority !== 'driver') {
    return { code: 'forbidden', message: `Cannot drive: this connection may be ${attachment.authority}` }
  }
  if (parts.roster.lease.holder !== attachment.id) handOver(parts, attachment)
  return undefined
}

/** The driver hands the lease to another attachment, if that one is there and may drive. */
export function giveLease(parts: SessionParts, attachment: Attachment, to: string): void {
  // A giver that has just lost the lease is late, not hostile.
  if (parts.roster.lease.holder !== attachment.id) return
  const target = parts.roster.ofId(to)
  if (target === undefined || target.state.is !== 'attached' || target.authority !== 'driver') return
  if (target !== attachment) handOver(parts, target)
}

/** An attachment asks the driver to hand over. */
export function askForLease({ roster, outbox }: SessionParts, attachment: Attachment): void {
  const { driver } = roster
  if (driver !== undefined && driver !== attachment) outbox.tell(driver, { type: 'asked', by: attachment.id })
}

function handOver({ roster, valve }: SessionParts, to: Attachment): void {
  const { driver } = roster
  if (driver !== undefined) valve.pinAt(driver.acked)
  roster.grantLease(to)
  roster.tellRole(to)
  roster.announce()
}
