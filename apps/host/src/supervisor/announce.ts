import { closeSync, openSync, writeSync } from 'node:fs'
import { schema } from '@sandwire/protocol'
import { openLibc } from '../libc.ts'

const announcementSchema = schema.tagged({
  /** The state file has the details. */
  running: schema.record({ type: schema.literal('running') }),
  failed: schema.record({ type: schema.literal('failed'), reason: schema.text(64) }),
  /** Another supervisor holds this sandbox. */
  held: schema.record({ type: schema.literal('held') }),
})

/** The one line that a supervisor prints for the host. */
export type Announcement = schema.Decoded<typeof announcementSchema>

export function decodeAnnouncement(line: string): Announcement | undefined {
  try {
    return announcementSchema.decode(JSON.parse(line))
  } catch {
    // Not an announcement.
    return undefined
  }
}

/** Prints the line and releases stdout, so that this process does not depend on the host. */
export function announce(announcement: Announcement): void {
  try {
    writeSync(1, `${JSON.stringify(announcement)}\n`)
  } catch {
    // The host is gone; the next one reads the state file.
  }
  const nowhere = openSync('/dev/null', 'w')
  // dup2 is atomic: a closed descriptor 1 could be reused by another open.
  openLibc({ dup2: { args: ['i32', 'i32'], returns: 'i32' } }).dup2(nowhere, 1)
  closeSync(nowhere)
}
