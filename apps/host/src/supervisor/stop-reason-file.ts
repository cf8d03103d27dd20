import { closeSync, fchmodSync, openSync, writeSync } from 'node:fs'
import path from 'node:path'
import { STOP_REASON_FILE } from '@sandwire/internal-api'
import type { OutsidePaths } from '../isolation/isolation.ts'

/** Tells sandboxd why it is about to be asked to end, so that it can tell whoever is attached. What is in the way stays. */
export function leaveStopReason({ daemonSocket }: Pick<OutsidePaths, 'daemonSocket'>, reason: string): void {
  try {
    // The sandbox can put anything there: nothing is followed, and nothing replaced.
    const fd = openSync(path.join(path.dirname(daemonSocket), STOP_REASON_FILE), 'wx', 0o600)
    try {
      // sandboxd is another user, and the only other one who can enter the folder.
      fchmodSync(fd, 0o644)
      writeSync(fd, reason)
    } finally {
      closeSync(fd)
    }
  } catch {
    // No room, or something else of that name: then it is told without a reason.
  }
}
