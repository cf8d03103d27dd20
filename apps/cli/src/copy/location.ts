import { realpathSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import { SANDBOX_NAME } from '../commands/positionals.ts'
import { retryTransfer, type Transfer } from './transfer.ts'
import { WriteRefusedError } from './local-folder.ts'
import { describeSystemError } from './local-entries.ts'
import type { RemoteStat } from './remote-workspace.ts'
import { HintedError } from '../errors/errors.ts'
import { UsageError } from '../options/words.ts'
import { printable } from '../text/printable.ts'

/** Where something is copied from or to. */
export type Location =
  | {
      readonly is: 'sandbox'
      readonly sandbox: string
      /** Relative to the workspace. */ readonly path: string
    }
  | { readonly is: 'local'; readonly path: string }
  /** Standard input or output. */
  | { readonly is: 'stream' }

/** A path in a sandbox without what means nothing in it; `.` for the workspace itself. */
function cleanPath(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  return parts.length === 0 ? '.' : parts.join('/')
}

/** Whether a path says that it names a folder, or what is in it. */
export function namesFolder(path: string): boolean {
  return /(^|\/)\.{0,2}$/.test(path)
}

/** Whether what is in the folder is meant, not the folder: `x/.`, `.` and `..` have no name of their own. */
export function isContentsPath(path: string): boolean {
  return /(^|\/)\.{1,2}\/*$/.test(path) || /^\/*$/.test(path)
}

/** Where the workspace is, as `pwd` shows it in a sandbox. */
const WORKSPACE = /^\/workspace(\/+|$)/

/** Names of standard output, which are links: what has them must stay what it is. */
const STANDARD_OUTPUT = new Set(['-', '/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'])

/** Reads where something is copied to. Throws `UsageError`. */
export function readTarget(word: string): Location {
  return STANDARD_OUTPUT.has(word) ? { is: 'stream' } : parseLocation(word)
}

/** Reads `SANDBOX:PATH`, whose path may begin with that of the workspace, a local path, or `-`. What has a slash before its colon is local. Throws `UsageError`. */
export function parseLocation(word: string): Location {
  if (word === '-') return { is: 'stream' }
  if (word === '') throw new UsageError('A path is empty')
  const at = word.indexOf(':')
  const sandbox = at < 0 ? '' : word.slice(0, at)
  if (!SANDBOX_NAME.test(sandbox)) return { is: 'local', path: word }
  const typed = word.slice(at + 1)
  const path = typed.replace(WORKSPACE, '')
  if (path.startsWith('/'))
    throw new UsageError(
      'A path in a sandbox is relative to its workspace, which is /workspace there',
      'nothing else of a sandbox can be copied or listed; copy it there first',
    )
  const isFolder = path !== '' && namesFolder(path) && cleanPath(path) !== '.'
  const suffix = isFolder ? (isContentsPath(path) ? '/.' : '/') : ''
  return { is: 'sandbox', sandbox, path: `${cleanPath(path)}${suffix}` }
}

/** The last name of a path, or undefined when it has none. */
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

export type SandboxLocation = Extract<Location, { is: 'sandbox' }>
export type LocalLocation = Exclude<Location, SandboxLocation>

/** What is at a path of the sandbox; undefined when nothing is. */
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

/** Says why a copy cannot begin. */
export function fail(what: string, why: string): never {
  throw new HintedError('bad_request', `Cannot copy ${what}: ${why}`, 'sbx-stdio cp --help')
}

/** Where a local folder really is: what is typed here may lead through links. */
export function realFolder(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    return fail(`to "${printable(path)}"`, describeSystemError(error))
  }
}

/** What the system of this machine says; what is wrong with a connection is no such error. */
function isOfSystem(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error
}

export function diskFullError(): HintedError {
  return new HintedError(
    'disk_full',
    'Cannot copy: no space is left on this machine',
    'make room, then copy again',
  )
}

/** Throws what went wrong on this machine in words; anything else as it is. */
export function throwLocalError(caught: unknown, place: LocalLocation, direction: 'from' | 'to'): never {
  const isRefused = caught instanceof WriteRefusedError
  if (place.is === 'stream' || !(isRefused || isOfSystem(caught))) throw caught
  const why = isRefused ? caught.message : describeSystemError(caught)
  if (why === 'no space is left') throw diskFullError()
  const shown = `"${printable(place.path)}"`
  return fail(direction === 'to' ? `to ${shown}` : shown, why)
}
