import { closeSync, openSync, writeSync } from 'node:fs'
import { shape } from '@sandwire/protocol'
import { openLibc } from '../libc.ts'

const announcementShape = shape.tagged({
  /** The state file has the details. */
  running: shape.record({ type: shape.literal('running') }),
  failed: shape.record({ type: shape.literal('failed'), reason: shape.text(64) }),
  /** Another supervisor holds this sandbox. */
  held: shape.record({ type: shape.literal('held') }),
})

/** The one line that a supervisor prints for the host. */
export type Announcement = shape.Decoded<typeof announcementShape>

export function decodeAnnouncement(line: string): Announcement | undefined {
  try {
    return announcementShape.decode(JSON.parse(line))
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
