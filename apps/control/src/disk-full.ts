import { DISK_FULL } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'

/** SQLite's error code in a message of workerd, which has no field for it. */
const SQLITE_FULL = /\bSQLITE_FULL\b/

/** True if the disk of the objects' databases is full. */
export function isDiskFull(caught: unknown): boolean {
  return caught instanceof Error && SQLITE_FULL.test(caught.message)
}

/** Converts a caught error. A full disk is named, because the operator can fix it. */
export function toSandwireError(caught: unknown): SandwireError {
  if (!isDiskFull(caught) || caught instanceof SandwireError) return SandwireError.from(caught)
  return new SandwireError('sandbox_failed', `Cannot store the state of sandboxes: ${DISK_FULL}`, {
    cause: caught,
  })
}
