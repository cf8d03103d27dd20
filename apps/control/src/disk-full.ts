import { DISK_FULL } from '@sandwire/internal'
import { SandwireError } from '@sandwire/protocol'

/** What the runtime says when the disk below the objects' databases has no room. */
const SQLITE_FULL = /\bSQLITE_FULL\b/

/** The error of whatever was caught; a full disk has a name, because somebody can do something about it. */
export function nameFault(caught: unknown): SandwireError {
  const isFull = caught instanceof Error && SQLITE_FULL.test(caught.message)
  if (!isFull || caught instanceof SandwireError) return SandwireError.from(caught)
  return new SandwireError('sandbox_failed', `Cannot keep the state of sandboxes: ${DISK_FULL}`, {
    cause: caught,
  })
}
