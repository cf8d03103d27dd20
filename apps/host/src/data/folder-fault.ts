import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'

/** Codes of the system for a place that cannot be used, in words. */
const FAULTS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there',
  EDQUOT: 'this user has no more room on its disk',
  EEXIST: 'it is not a folder',
  EIO: 'its disk fails',
  ENOSPC: 'its disk is full',
  ENOTDIR: 'it is not a folder',
  EPERM: 'this user may not write there',
  EROFS: 'it is read-only',
}
/** Those that somebody can mend without another folder. */
const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT'])

interface SystemFault {
  readonly code: string
  readonly path: string | undefined
}

function readFault(caught: unknown): SystemFault | undefined {
  if (!(caught instanceof Error) || !('code' in caught)) return undefined
  const { code } = caught
  if (typeof code !== 'string' || !Object.hasOwn(FAULTS, code)) return undefined
  return { code, path: 'path' in caught && typeof caught.path === 'string' ? caught.path : undefined }
}

/** The error of a start that the system refused: which folder, why, and what to do. One that says enough stays as it is. */
export function nameFolderFault(caught: unknown, folder: string): SandwireError {
  const told = SandwireError.from(caught)
  const fault = told.code === 'internal' ? readFault(told.cause) : undefined
  if (fault === undefined) return told
  const why = FAULTS[fault.code] ?? fault.code
  const isElsewhere = fault.path !== undefined && path.relative(folder, fault.path).startsWith('..')
  if (isElsewhere) return new SandwireError('forbidden', `Cannot use "${fault.path}": ${why}`)
  const way = FULL.has(fault.code) ? 'make room there, or choose' : 'choose'
  return new SandwireError(
    'forbidden',
    `Cannot use the data folder "${folder}": ${why}\nhint: ${way} another folder with --data`,
  )
}
