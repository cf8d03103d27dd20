import { SandwireError } from '@sandwire/protocol'
import { pathIn } from '../path-in.ts'
import { searchContent } from '../search/content-search.ts'
import { type FindLimits, findNames, type FindResult } from '../search/find-names.ts'
import { nameSearch, type NameTest } from '../search/name-pattern.ts'
import { parseSearch } from '../search/search-request.ts'
import { type Holding, respondListing } from './held-answer.ts'
import { Query } from './query.ts'
import type { Workspace, WorkspaceCall } from './route.ts'

/** Enough for a large repository; what is larger is searched in part. */
export const FIND_LIMITS: FindLimits = { maxResults: 200, maxNodes: 300_000, maxDepth: 100, timeMs: 10_000 }
export const MAX_FOUND = 5_000
/** Longest name that a file can have is 255 bytes; a pattern needs little more. */
const MAX_NAME_CHARS = 1_024

interface Dependencies {
  readonly workspace: Workspace
}

export const SEARCH_HANDLERS = { 'GET /workspace/search': searchFiles, 'GET /workspace/find': findFiles }

/** `GET /workspace/search`: lines of JSON, as they are found. */
async function searchFiles({ url, request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  const found = await searchContent(parseSearch(new Query(url)), { ...workspace, signal: request.signal })
  return new Response(found, {
    headers: {
      'content-type': 'application/x-ndjson; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
  })
}

/** `GET /workspace/find`: names that hold `q`, or fit it when it has `*`, `?` or `[`. */
async function findFiles(call: WorkspaceCall, deps: Dependencies): Promise<Response> {
  const query = new Query(call.url)
  const text = query.text('q')
  if (text === '') throw new SandwireError('bad_request', 'Cannot use parameter "q": empty')
  const path = query.text('path', '.')
  const maxResults = query.whole('limit', { min: 1, max: MAX_FOUND }) ?? FIND_LIMITS.maxResults
  const isMeant = nameSearch(checkPatternLength(text))
  const search = async (): Promise<object> => {
    const limits = { ...FIND_LIMITS, maxResults }
    const { found, isTruncated } = await find(path, isMeant, limits, { call, deps })
    const results = found.map((entry) => ({ path: pathIn(path, entry.path), kind: entry.kind }))
    return { results, truncated: isTruncated }
  }
  return respondListing(search, holdingOf(call, deps))
}

/** Not that of listings, which nobody waits for as long. */
function holdingOf({ request }: WorkspaceCall, { workspace }: Dependencies): Holding {
  return { texts: workspace.searches, signal: request.signal }
}

interface Context {
  readonly call: WorkspaceCall
  readonly deps: Dependencies
}

function find(
  path: string,
  isMeant: NameTest,
  limits: FindLimits,
  { call, deps }: Context,
): Promise<FindResult> {
  const { files } = deps.workspace
  return findNames(path, isMeant, limits, { files, signal: call.request.signal })
}

export function checkPatternLength(text: string): string {
  if (text.length <= MAX_NAME_CHARS) return text
  throw new SandwireError('bad_request', `Cannot use parameter "q": more than ${MAX_NAME_CHARS} characters`)
}
