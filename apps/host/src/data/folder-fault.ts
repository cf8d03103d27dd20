import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'

/** Codes of the system for a place that cannot be used, in words. */
const FAULTS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there',
  EDQUOT: 'this user has no more room on its disk',
  EEXIST: 'it is not a folder',
  EIO: 'its disk fails',
  EISDIR: 'it is a folder',
  ENOENT: 'no folder can be made there',
  ENOSPC: 'its disk is full',
  ENOTDIR: 'it is not a folder',
  EPERM: 'this user may not write there',
  EROFS: 'it is read-only',
}
/** Those that somebody can mend without another folder. */
const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT'])
/** Those of the one part that is something else than it has to be. */
const OF_ONE_PART: ReadonlySet<string> = new Set(['EEXIST', 'EISDIR', 'ENOTDIR'])

interface SystemFault {
  readonly code: string
  readonly why: string
  readonly path: string | undefined
}

function readFault(caught: unknown): SystemFault | undefined {
  if (!(caught instanceof Error) || !('code' in caught)) return undefined
  const { code } = caught
  const why = typeof code === 'string' && Object.hasOwn(FAULTS, code) ? FAULTS[code] : undefined
  if (typeof code !== 'string' || why === undefined) return undefined
  return { code, why, path: 'path' in caught && typeof caught.path === 'string' ? caught.path : undefined }
}

/** Why the system refused a folder, in words; undefined when it was something else. */
export function explainFault(caught: unknown): string | undefined {
  return readFault(caught)?.why
}

/** The error of a start that the system refused: which folder, why, and what to do. One that says enough stays as it is. */
export function nameFolderFault(caught: unknown, folder: string): SandwireError {
  const told = SandwireError.from(caught)
  const fault = told.code === 'internal' ? readFault(told.cause) : undefined
  if (fault === undefined) return told
  const { code, why, path: place } = fault
  const way = place === undefined ? undefined : path.relative(folder, place)
  const isElsewhere = way?.startsWith('..') === true
  // A file or program that is missing says nothing about the folder.
  if (code === 'ENOENT' && (way === undefined || isElsewhere)) return told
  if (isElsewhere) return new SandwireError('forbidden', `Cannot use "${place}": ${why}`)
  if (OF_ONE_PART.has(code) && way !== undefined && way !== '')
    return new SandwireError(
      'forbidden',
      `Cannot use "${place}": ${why}\nhint: remove it, or choose another data folder with --data`,
    )
  const advice = FULL.has(code) ? 'make room there, or choose' : 'choose'
  return new SandwireError(
    'forbidden',
    `Cannot use the data folder "${folder}": ${why}\nhint: ${advice} another folder with --data`,
  )
}
