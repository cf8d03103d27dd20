import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import {
  EACCES,
  EBUSY,
  EDQUOT,
  EEXIST,
  EFBIG,
  EINVAL,
  EISDIR,
  ELOOP,
  ENAMETOOLONG,
  ENODEV,
  ENOENT,
  ENOSPC,
  ENOTDIR,
  ENOTEMPTY,
  ENXIO,
  EPERM,
  EROFS,
  ETXTBSY,
  EXDEV,
} from './constants.ts'

/** Error code and reason for each errno. */
const MEANINGS: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  [EXDEV]: ['path_refused', 'it is outside the workspace'],
  [ELOOP]: ['path_refused', 'too many symbolic links'],
  [ENAMETOOLONG]: ['path_refused', 'it is too long'],
  [EINVAL]: ['path_refused', 'the file system does not accept the name'],
  [ENOENT]: ['file_not_found', 'no such file'],
  [EEXIST]: ['file_exists', 'it already exists'],
  [ENOTDIR]: ['not_a_folder', 'not a folder'],
  [EISDIR]: ['is_a_folder', 'it is a folder'],
  [ENOTEMPTY]: ['folder_not_empty', 'the folder is not empty'],
  [ENXIO]: ['special_file', 'neither a file nor a folder'],
  [ENODEV]: ['special_file', 'neither a file nor a folder'],
  [EACCES]: ['file_refused', 'permission denied'],
  [EPERM]: ['file_refused', 'permission denied'],
  [EROFS]: ['file_refused', 'the file system is read-only'],
  [EBUSY]: ['file_refused', 'it is in use'],
  [ETXTBSY]: ['file_refused', 'it is in use'],
  [ENOSPC]: ['disk_full', 'no space left on the disk'],
  [EDQUOT]: ['disk_full', 'no space left on the disk'],
  [EFBIG]: ['disk_full', 'the file is too large for the file system'],
}

/** The action in the message: `Cannot read "a/b": no such file`. */
export type FileAction = 'read' | 'list' | 'write' | 'make' | 'remove' | 'move' | 'copy' | 'open' | 'restore'

/** Error code and reason of a failed system call; `errno` is negative, as the calls return it. */
export function describeErrno(errno: number): readonly [ErrorCode, string] {
  return MEANINGS[-errno] ?? ['internal', 'the system failed']
}

/** The error for a failed system call; `errno` is negative, as the calls return it. */
export function fileError(action: FileAction, path: string, errno: number): SandwireError {
  const [code, reason] = describeErrno(errno)
  const cause = new Error(`errno ${-errno}`)
  return new SandwireError(code, `Cannot ${action} ${quotePath(path)}: ${reason}`, { cause })
}

/** The error for a check of our own. */
export function refusal(code: ErrorCode, action: FileAction, path: string, why: string): SandwireError {
  return new SandwireError(code, `Cannot ${action} ${quotePath(path)}: ${why}`)
}

/** Longest path in a message. */
const MAX_SHOWN_CHARS = 200

/**
 * Quotes a path for a message. Non-printable characters are replaced, because a name can contain escape sequences and
 * bidirectional controls.
 */
export function quotePath(text: string): string {
  const shown = text
    .slice(0, MAX_SHOWN_CHARS)
    .replace(/[\p{C}\p{Zl}\p{Zp}"\\]/gu, (found) =>
      found === '"' || found === '\\' ? `\\${found}` : '\u{fffd}',
    )
  return `"${shown}${text.length > MAX_SHOWN_CHARS ? '…' : ''}"`
}

/** The error for a failed read or write on a descriptor. */
export function systemError(caught: unknown, action: string): SandwireError {
  if (caught instanceof SandwireError) return caught
  const code = caught instanceof Error && 'code' in caught ? String(caught.code) : ''
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return new SandwireError('disk_full', `${action}: no space left on the disk`, { cause: caught })
  }
  return new SandwireError('internal', `${action}: the system failed`, { cause: caught })
}
