import { dlopen } from 'bun:ffi'
import { closeSync, openSync, writeSync } from 'node:fs'
import { shape } from '@sandwire/protocol'

const announcementShape = shape.tagged({
  /** The state file says where the sandbox is. */
  running: shape.record({ type: shape.literal('running') }),
  failed: shape.record({ type: shape.literal('failed'), reason: shape.text(64) }),
  /** Another supervisor has this sandbox. */
  held: shape.record({ type: shape.literal('held') }),
})

/** The one line that a supervisor says to whoever started it. */
export type Announcement = shape.Decoded<typeof announcementShape>

export function decodeAnnouncement(line: string): Announcement | undefined {
  try {
    return announcementShape.decode(JSON.parse(line))
  } catch {
    // Not a line of ours.
    return undefined
  }
}

/** Says the line and lets go of standard output, so that nothing ties this process to the one that started it. */
export function announce(announcement: Announcement): void {
  try {
    writeSync(1, `${JSON.stringify(announcement)}\n`)
  } catch {
    // Whoever started this is gone; the next one reads the state file.
  }
  const nowhere = openSync('/dev/null', 'w')
  // In one step: a number that is free for a moment is taken by whoever opens something in it.
  dlopen('libc.so.6', { dup2: { args: ['i32', 'i32'], returns: 'i32' } }).symbols.dup2(nowhere, 1)
  closeSync(nowhere)
}
