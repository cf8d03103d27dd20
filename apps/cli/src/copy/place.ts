import { SANDBOX_NAME } from '../commands/positionals.ts'
import { Wrong } from '../options/words.ts'

/** Where something is copied from or to. */
export type Place =
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
export function endsAsFolder(path: string): boolean {
  return /(^|\/)\.{0,2}$/.test(path)
}

/** Whether what is in the folder is meant, not the folder: `x/.`, `.` and `..` have no name of their own. */
export function hasNoName(path: string): boolean {
  return /(^|\/)\.{1,2}\/*$/.test(path) || /^\/*$/.test(path)
}

/** Where the workspace is, as `pwd` shows it in a sandbox. */
const WORKSPACE = /^\/workspace(\/+|$)/

/** Names of standard output, which are links: what has them must stay what it is. */
const STANDARD_OUTPUT = new Set(['-', '/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'])

/** Reads where something is copied to. Throws `Wrong`. */
export function readTarget(word: string): Place {
  return STANDARD_OUTPUT.has(word) ? { is: 'stream' } : readPlace(word)
}

/** Reads `SANDBOX:PATH`, whose path may begin with that of the workspace, a local path, or `-`. What has a slash before its colon is local. Throws `Wrong`. */
export function readPlace(word: string): Place {
  if (word === '-') return { is: 'stream' }
  if (word === '') throw new Wrong('A path is empty')
  const at = word.indexOf(':')
  const sandbox = at < 0 ? '' : word.slice(0, at)
  if (!SANDBOX_NAME.test(sandbox)) return { is: 'local', path: word }
  const typed = word.slice(at + 1)
  const path = typed.replace(WORKSPACE, '')
  if (path.startsWith('/'))
    throw new Wrong(
      'A path in a sandbox is relative to its workspace, which is /workspace there',
      'nothing else of a sandbox can be copied or listed; copy it there first',
    )
  const isFolder = path !== '' && endsAsFolder(path) && cleanPath(path) !== '.'
  const suffix = isFolder ? (hasNoName(path) ? '/.' : '/') : ''
  return { is: 'sandbox', sandbox, path: `${cleanPath(path)}${suffix}` }
}

/** The last name of a path, or undefined when it has none. */
export function lastName(path: string): string | undefined {
  if (hasNoName(path)) return undefined
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
