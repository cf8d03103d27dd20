import { lstatSync, statfsSync, type Stats, statSync } from 'node:fs'
import path from 'node:path'
import { DISK_FULL } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'

/** Codes of the system for a path that cannot be looked at, in words. */
const WORDS: Readonly<Record<string, string>> = {
  EACCES: 'is in a folder that this user may not enter',
  ELOOP: 'is a link that leads in a circle',
  ENAMETOOLONG: 'is too long for a path or a name in it',
}
/** Longer paths are told by their beginning. */
const SHOWN_CHARS = 120

/** A path as it is told. */
export function showPath(place: string): string {
  return `"${place.length > SHOWN_CHARS ? `${place.slice(0, SHOWN_CHARS)}…` : place}"`
}

/** Why there is no folder at a path, nor can be one; undefined when there is one, or nothing yet. */
function problemAt(place: string): string | undefined {
  try {
    const found = statSync(place, { throwIfNoEntry: false })
    if (found !== undefined) return found.isDirectory() ? undefined : 'is not a folder'
    const isLink = lstatSync(place, { throwIfNoEntry: false })?.isSymbolicLink() === true
    return isLink ? 'is a link that leads nowhere' : undefined
  } catch (error) {
    // What is below a file is told by that file.
    return error instanceof Error && 'code' in error ? WORDS[String(error.code)] : undefined
  }
}

/** What keeps a folder from being made, on the way there or in its place: `"/etc/passwd" is not a folder`. */
export function findFolderProblem(folder: string): string | undefined {
  const problem = problemAt(folder)
  if (problem !== undefined) return `${showPath(folder)} ${problem}`
  const parent = path.dirname(folder)
  return parent === folder ? undefined : findFolderProblem(parent)
}

/** Codes of the system for a place that cannot be used, in words. */
const EXPLANATIONS: Readonly<Record<string, string>> = {
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
const WRONG_KIND: ReadonlySet<string> = new Set(['EEXIST', 'EISDIR', 'ENOTDIR'])

interface SystemError {
  readonly code: string
  readonly why: string
  readonly path: string | undefined
}

function readSystemError(caught: unknown): SystemError | undefined {
  if (!(caught instanceof Error) || !('code' in caught)) return undefined
  const { code } = caught
  const why = typeof code === 'string' && Object.hasOwn(EXPLANATIONS, code) ? EXPLANATIONS[code] : undefined
  if (typeof code !== 'string' || why === undefined) return undefined
  return { code, why, path: 'path' in caught && typeof caught.path === 'string' ? caught.path : undefined }
}

/** Why the system refused a folder, in words; undefined when it was something else. */
export function explainSystemError(caught: unknown): string | undefined {
  return readSystemError(caught)?.why
}

/** The error of a start that the system refused: which folder, why, and what to do. One that says enough stays as it is. */
export function toFolderError(caught: unknown, folder: string): SandwireError {
  const told = SandwireError.from(caught)
  const problem = told.code === 'internal' ? readSystemError(told.cause) : undefined
  if (problem === undefined) return told
  const { code, why, path: place } = problem
  const way = place === undefined ? undefined : path.relative(folder, place)
  const isElsewhere = way?.startsWith('..') === true
  // A file or program that is missing says nothing about the folder.
  if (code === 'ENOENT' && (way === undefined || isElsewhere)) return told
  if (isElsewhere) return new SandwireError('forbidden', `Cannot use "${place}": ${why}`)
  if (WRONG_KIND.has(code) && way !== undefined && way !== '')
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

/** Codes of the system for no room, and for no more room of this user. */
const FULL_CODES: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT'])
/** Less than a start writes beside the sandbox's files. */
const MIN_FREE_BYTES = 64 * 1024
/** Causes of causes that are looked at. */
const MAX_DEPTH = 5

function isDiskFullError(caught: unknown, depth = 0): boolean {
  if (!(caught instanceof Error) || depth > MAX_DEPTH) return false
  return ('code' in caught && FULL_CODES.has(caught.code)) || isDiskFullError(caught.cause, depth + 1)
}

/** The error of whatever was caught; a full disk has a name, because somebody can do something about it. */
export function toHostError(caught: unknown): SandwireError {
  if (!isDiskFullError(caught)) return SandwireError.from(caught)
  return new SandwireError('sandbox_failed', `Cannot do this with the sandbox: ${DISK_FULL}`, {
    cause: caught,
  })
}

/** Whether a folder's disk has no room for this user, or for no further file. */
export function isDiskFull(folder: string, stat: typeof statfsSync = statfsSync): boolean {
  const { bavail, bsize, files, ffree } = stat(folder)
  return bavail * bsize < MIN_FREE_BYTES || (files > 0 && ffree === 0)
}

/** Codes of the system for a path at which nothing can be found: behind a file, a circle of links, a closed door. */
const NOT_FOUND_CODES: ReadonlySet<unknown> = new Set(['ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES'])

/** What is at a path, links followed; undefined when this user finds nothing there. */
export function findFile(file: string): Stats | undefined {
  try {
    return statSync(file, { throwIfNoEntry: false })
  } catch (error) {
    if (error instanceof Error && 'code' in error && NOT_FOUND_CODES.has(error.code)) return undefined
    throw error
  }
}
