import { lstatSync, statfsSync, type Stats, statSync } from 'node:fs'
import path from 'node:path'
import { DISK_FULL } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'

/** System error codes for a path that cannot be a folder. */
const PATH_PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: 'is in a folder that this user may not enter',
  ELOOP: 'is a symbolic link loop',
  ENAMETOOLONG: 'is too long for a path',
}
/** Longer paths are truncated in messages. */
const MAX_SHOWN_CHARS = 120

/** Quotes a path for a message. */
export function showPath(file: string): string {
  return `"${file.length > MAX_SHOWN_CHARS ? `${file.slice(0, MAX_SHOWN_CHARS)}…` : file}"`
}

/** Why the path is not a folder and cannot become one; undefined when it is one or does not exist. */
function problemAt(file: string): string | undefined {
  try {
    const found = statSync(file, { throwIfNoEntry: false })
    if (found !== undefined) return found.isDirectory() ? undefined : 'is not a folder'
    const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true
    return isLink ? 'is a broken symbolic link' : undefined
  } catch (error) {
    // ENOTDIR is reported for the parent that is a file.
    return error instanceof Error && 'code' in error ? PATH_PROBLEMS[String(error.code)] : undefined
  }
}

/** Why a folder cannot be created, in the path itself or in one of its parents: `"/etc/passwd" is not a folder`. */
export function findFolderProblem(folder: string): string | undefined {
  const problem = problemAt(folder)
  if (problem !== undefined) return `${showPath(folder)} ${problem}`
  const parent = path.dirname(folder)
  return parent === folder ? undefined : findFolderProblem(parent)
}

/** System error codes for a file or folder that cannot be used. */
const EXPLANATIONS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there',
  EDQUOT: 'the disk quota of this user is used up',
  EEXIST: 'it is not a folder',
  EIO: 'its disk reports errors',
  EISDIR: 'it is a folder',
  ENOENT: 'the folder cannot be created',
  ENOSPC: 'its disk is full',
  ENOTDIR: 'it is not a folder',
  EPERM: 'this user may not write there',
  EROFS: 'it is read-only',
}
const FULL_CODES: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT'])
/** Codes that mean that one entry of the data folder is a file instead of a folder, or the reverse. */
const WRONG_KIND_CODES: ReadonlySet<string> = new Set(['EEXIST', 'EISDIR', 'ENOTDIR'])

interface SystemError {
  readonly code: string
  readonly explanation: string
  readonly path: string | undefined
}

function readSystemError(caught: unknown): SystemError | undefined {
  if (!(caught instanceof Error) || !('code' in caught)) return undefined
  const { code } = caught
  const explanation =
    typeof code === 'string' && Object.hasOwn(EXPLANATIONS, code) ? EXPLANATIONS[code] : undefined
  if (typeof code !== 'string' || explanation === undefined) return undefined
  const file = 'path' in caught && typeof caught.path === 'string' ? caught.path : undefined
  return { code, explanation, path: file }
}

/** Explains a system error about a folder; undefined for any other error. */
export function explainSystemError(caught: unknown): string | undefined {
  return readSystemError(caught)?.explanation
}

/** Turns a system error during startup into one that names the folder and what to do. Other errors are returned unchanged. */
export function toFolderError(caught: unknown, folder: string): SandwireError {
  const error = SandwireError.from(caught)
  const found = error.code === 'internal' ? readSystemError(error.cause) : undefined
  if (found === undefined) return error
  const { code, explanation, path: file } = found
  const relative = file === undefined ? undefined : path.relative(folder, file)
  const isOutside = relative?.startsWith('..') === true
  // A file or program that is missing elsewhere says nothing about the folder.
  if (code === 'ENOENT' && (relative === undefined || isOutside)) return error
  if (isOutside) return new SandwireError('forbidden', `Cannot use "${file}": ${explanation}`)
  if (WRONG_KIND_CODES.has(code) && relative !== undefined && relative !== '')
    return new SandwireError(
      'forbidden',
      `Cannot use "${file}": ${explanation}\nhint: remove it, or choose another data folder with --data`,
    )
  const advice = FULL_CODES.has(code) ? 'free some space, or choose' : 'choose'
  return new SandwireError(
    'forbidden',
    `Cannot use the data folder "${folder}": ${explanation}\nhint: ${advice} another folder with --data`,
  )
}

/** Less than a sandbox start writes besides the files of the sandbox. */
const MIN_FREE_BYTES = 64 * 1024
/** Nested causes that are inspected. */
const MAX_CAUSES = 5

function isDiskFullError(caught: unknown, depth = 0): boolean {
  if (!(caught instanceof Error) || depth > MAX_CAUSES) return false
  return ('code' in caught && FULL_CODES.has(caught.code)) || isDiskFullError(caught.cause, depth + 1)
}

/** Cause of an error that a full disk led to. The host API reports the folder to control as a field. */
export class FullDisk extends Error {
  /** A folder on the disk that is full. */
  readonly folder: string

  constructor(folder: string, cause?: unknown) {
    super(`The disk of "${folder}" is full`, { cause })
    this.folder = folder
  }
}

/** A file or folder that must exist is missing or damaged. As the cause of an error, the host API reports it to control as a field. */
export class MissingFile extends Error {
  readonly file: string

  constructor(file: string) {
    super(`"${file}" is missing or damaged`)
    this.file = file
  }
}

/** The error to answer a host API request with; a full disk is named, because the operator can act on it. */
export function toHostError(caught: unknown, dataFolder: string): SandwireError {
  if (!isDiskFullError(caught)) return SandwireError.from(caught)
  return new SandwireError('sandbox_failed', `Cannot do this with the sandbox: ${DISK_FULL}`, {
    cause: new FullDisk(dataFolder, caught),
  })
}

/** True when the disk of a folder has no space or no inode left for this user. */
export function isDiskFull(folder: string, stat: typeof statfsSync = statfsSync): boolean {
  const { bavail, bsize, files, ffree } = stat(folder)
  return bavail * bsize < MIN_FREE_BYTES || (files > 0 && ffree === 0)
}

/** System error codes for a path at which this user finds nothing. */
const NOT_FOUND_CODES: ReadonlySet<unknown> = new Set(['ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES'])

/** `stat` of a path, links followed; undefined when this user finds nothing there. */
export function findFile(file: string): Stats | undefined {
  try {
    return statSync(file, { throwIfNoEntry: false })
  } catch (error) {
    if (error instanceof Error && 'code' in error && NOT_FOUND_CODES.has(error.code)) return undefined
    throw error
  }
}
