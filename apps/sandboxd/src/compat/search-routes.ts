import { SandwireError } from '@sandwire/protocol'
import { pathIn } from '../workspace/beneath/path.ts'
import { respondListing } from '../workspace/routes/listing-response.ts'
import { Query } from '../workspace/routes/parameters.ts'
import type { Workspace, WorkspaceCall } from '../workspace/routes/route.ts'
import { checkPatternLength, FIND_LIMITS, MAX_FOUND } from '../workspace/routes/search-routes.ts'
import {
  type FindLimits,
  findNames,
  type FindResult,
  type FoundName,
  namePattern,
} from '../workspace/search/name-search.ts'
import {
  missing,
  printablePath,
  respondUnprocessable,
  type ValidationProblem,
  withMessages,
} from './responses.ts'

/** The older API searches ten folder levels below the one that is named. */
const LIMITS: FindLimits = { ...FIND_LIMITS, maxResults: MAX_FOUND, maxDepth: 11 }

export const SEARCH_HANDLERS = { 'GET /workspace/compat/search': search }

/** `GET /api/search`: file names by glob pattern. If a parameter is repeated, the last value counts. */
async function search(
  { url, request }: WorkspaceCall,
  { workspace }: { readonly workspace: Workspace },
): Promise<Response> {
  const query = new Query(url)
  const pattern = query.all('q').at(-1)
  const path = query.all('path').at(-1) ?? '.'
  if (pattern === undefined) return respondUnprocessable([missing(['query', 'q'])])
  if (pattern === '') return respondUnprocessable([tooShort(pattern)])
  const isMatch = namePattern(checkPatternLength(pattern))
  const messages = { not_a_folder: `Path is not a directory: ${printablePath(path)}` }
  const find = (): Promise<FindResult> =>
    findNames(path === '' ? '.' : path, isMatch, LIMITS, {
      files: workspace.files,
      signal: request.signal,
    }).catch(emptyIfNotFound)
  const list = async (): Promise<object> => {
    const { found } = await withMessages(path, messages, find)
    const results = found.toSorted(compareFound).map((entry) => {
      const whole = pathIn(path, entry.path)
      return { name: entry.name, path: whole, dir: whole.slice(0, Math.max(0, whole.lastIndexOf('/'))) }
    })
    return { results, pattern, path }
  }
  return respondListing(list, { memory: workspace.searches, signal: request.signal })
}

/** The older API reports no results for a folder that does not exist. */
function emptyIfNotFound(error: unknown): FindResult {
  if (error instanceof SandwireError && error.code === 'file_not_found')
    return { found: [], isTruncated: false }
  throw error
}

function tooShort(text: string): ValidationProblem {
  const msg = 'String should have at least 1 character'
  return { type: 'string_too_short', loc: ['query', 'q'], msg, input: text, ctx: { min_length: 1 } }
}

/** Order of a tree view: folders first, then by lower-cased name, the contents of a folder right after it. */
export function compareFound(left: FoundName, right: FoundName): number {
  const ours = left.path.split('/')
  const theirs = right.path.split('/')
  const at = ours.findIndex((name, index) => name !== theirs[index])
  if (at < 0) return ours.length - theirs.length
  if (at >= theirs.length) return 1
  const isSameKind = isFolderAt(left, ours, at) === isFolderAt(right, theirs, at)
  if (!isSameKind) return isFolderAt(left, ours, at) ? -1 : 1
  const [one = '', other = ''] = [ours[at], theirs[at]]
  return compare(one.toLowerCase(), other.toLowerCase()) || compare(one, other)
}

function isFolderAt(found: FoundName, names: readonly string[], at: number): boolean {
  return at < names.length - 1 || found.isFolder
}

/** By code points, as Python orders text. */
function compare(left: string, right: string): number {
  const ours = Array.from(left)
  const theirs = Array.from(right)
  const at = ours.findIndex((character, index) => character !== theirs[index])
  if (at < 0) return ours.length - theirs.length
  return (ours[at]?.codePointAt(0) ?? 0) - (theirs[at]?.codePointAt(0) ?? -1)
}
