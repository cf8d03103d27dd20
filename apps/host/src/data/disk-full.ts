import { statfsSync } from 'node:fs'
import { DISK_FULL } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'

/** Codes of the system for no room, and for no more room of this user. */
const FULL_CODES: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT'])
/** Less than a start writes beside the sandbox's files. */
const ROOM_BYTES = 64 * 1024
/** Causes of causes that are looked at. */
const MAX_DEPTH = 5

function isNoRoom(caught: unknown, depth = 0): boolean {
  if (!(caught instanceof Error) || depth > MAX_DEPTH) return false
  return ('code' in caught && FULL_CODES.has(caught.code)) || isNoRoom(caught.cause, depth + 1)
}

/** The error of whatever was caught; a full disk has a name, because somebody can do something about it. */
export function nameFault(caught: unknown): SandwireError {
  if (!isNoRoom(caught)) return SandwireError.from(caught)
  return new SandwireError('sandbox_failed', `Cannot do this with the sandbox: ${DISK_FULL}`, {
    cause: caught,
  })
}

/** Whether a folder's disk has no room for this user, or for no further file. */
export function isDiskFull(folder: string, stat: typeof statfsSync = statfsSync): boolean {
  const { bavail, bsize, files, ffree } = stat(folder)
  return bavail * bsize < ROOM_BYTES || (files > 0 && ffree === 0)
}
