import { DISK_FULL } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'

/** What the runtime says when the disk below the objects' databases has no room. */
const SQLITE_FULL = /\bSQLITE_FULL\b/

/** Whether something failed because the disk is full. */
export function isDiskFull(caught: unknown): boolean {
  return caught instanceof Error && SQLITE_FULL.test(caught.message)
}

/** The error of whatever was caught; a full disk has a name, because somebody can do something about it. */
export function nameFault(caught: unknown): SandwireError {
  if (!isDiskFull(caught) || caught instanceof SandwireError) return SandwireError.from(caught)
  return new SandwireError('sandbox_failed', `Cannot keep the state of sandboxes: ${DISK_FULL}`, {
    cause: caught,
  })
}
