import { realpathSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import { SANDBOX_NAME } from '../commands/positionals.ts'
import { retryTransfer, type Transfer } from './transfer.ts'
import { WriteRefusedError } from './local-folder.ts'
import { describeSystemError, isDiskFull } from './local-entries.ts'
import type { RemoteStat } from './remote-workspace.ts'
import { HintedError, UsageError } from '../errors/errors.ts'
import { printable } from '../text/printable.ts'

/** Source or target of a copy. */
export type Location =
  | {
      readonly kind: 'sandbox'
      readonly sandbox: string
      /** Relative to the workspace. */ readonly path: string
    }
  | { readonly kind: 'local'; readonly path: string }
  /** stdin or stdout. */
  | { readonly kind: 'stream' }

/** Removes empty and `.` parts of a sandbox path; `.` is the workspace. */
function cleanPath(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  return parts.length === 0 ? '.' : parts.join('/')
}

/** True for a path that ends with a slash, `.` or `..`. */
export function namesFolder(path: string): boolean {
  return /(^|\/)\.{0,2}$/.test(path)
}

/** True for a path that means the contents of a folder: `x/.`, `.` and `..` have no name. */
export function isContentsPath(path: string): boolean {
  return /(^|\/)\.{1,2}\/*$/.test(path) || /^\/*$/.test(path)
}

/** The path of the workspace inside a sandbox. */
const WORKSPACE = /^\/workspace(\/+|$)/

/** Names of stdout, which must not be replaced by a file. */
const STANDARD_OUTPUT = new Set(['-', '/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'])

/** Parses the target of a copy. Throws `UsageError`. */
export function parseTarget(argument: string): Location {
  return STANDARD_OUTPUT.has(argument) ? { kind: 'stream' } : parseLocation(argument)
}

/**
 * Parses `SANDBOX:PATH`, a local path, or `-`. A sandbox path may start with `/workspace`. A path with a slash before the
 * colon is local. Throws `UsageError`.
 */
export function parseLocation(argument: string): Location {
  if (argument === '-') return { kind: 'stream' }
  if (argument === '') throw new UsageError('The path is empty')
  const at = argument.indexOf(':')
  const sandbox = at < 0 ? '' : argument.slice(0, at)
  if (!SANDBOX_NAME.test(sandbox)) return { kind: 'local', path: argument }
  const typed = argument.slice(at + 1)
  const path = typed.replace(WORKSPACE, '')
  if (path.startsWith('/'))
    throw new UsageError(
      'Only the workspace of a sandbox (/workspace) can be copied or listed',
      'copy the file into the workspace first',
    )
  const isFolder = path !== '' && namesFolder(path) && cleanPath(path) !== '.'
  const suffix = isFolder ? (isContentsPath(path) ? '/.' : '/') : ''
  return { kind: 'sandbox', sandbox, path: `${cleanPath(path)}${suffix}` }
}

/** The last part of a path; undefined for a contents path. */
export function baseName(path: string): string | undefined {
  if (isContentsPath(path)) return undefined
  return path.split('/').findLast((part) => part !== '')
}

/** The folder that a path of a sandbox is in. */
export function parentOf(path: string): string {
  const parts = path.split('/').filter((part) => part !== '')
  return parts.length < 2 ? '.' : parts.slice(0, -1).join('/')
}

/** The path of something in a folder of a sandbox. */
export function within(folder: string, name: string): string {
  const clean = cleanPath(folder)
  return clean === '.' ? name : `${clean}/${name}`
}

export type SandboxLocation = Extract<Location, { kind: 'sandbox' }>
export type LocalLocation = Exclude<Location, SandboxLocation>

/** The stat of a sandbox path; undefined if it does not exist. */
export async function statRemote(transfer: Transfer, path: string): Promise<RemoteStat | undefined> {
  try {
    return await retryTransfer(
      transfer,
      () => transfer.remote.stat(path),
      () => 0,
    )
  } catch (error) {
    if (SandwireError.from(error).code === 'file_not_found') return undefined
    throw error
  }
}

export function isFolder(stat: RemoteStat | undefined): boolean {
  return stat?.kind === 'folder' || (stat?.kind === 'link' && stat.target === 'folder')
}

/** Fails with a usage error of `cp`. */
export function fail(what: string, problem: string): never {
  throw new HintedError('bad_request', `Cannot copy ${what}: ${problem}`, 'sbx-stdio cp --help')
}

/** The real path of a local folder. */
export function realFolder(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    return fail(`to "${printable(path)}"`, describeSystemError(error))
  }
}

/** True for errors of the local file system, not of the connection. */
function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error
}

export function diskFullError(): HintedError {
  return new HintedError(
    'disk_full',
    'Cannot copy: no space left on this machine',
    'free disk space, then copy again',
  )
}

/** Rethrows local errors with the path in the message, other errors as they are. */
export function throwLocalError(caught: unknown, location: LocalLocation, direction: 'from' | 'to'): never {
  const isRefused = caught instanceof WriteRefusedError
  if (location.kind === 'stream' || !(isRefused || isSystemError(caught))) throw caught
  if (isDiskFull(caught)) throw diskFullError()
  const reason = isRefused ? caught.message : describeSystemError(caught)
  const shown = `"${printable(location.path)}"`
  return fail(direction === 'to' ? `to ${shown}` : shown, reason)
}
