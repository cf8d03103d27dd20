import { SandwireError } from '@sandwire/protocol'
import { pathIn } from '../beneath/path.ts'
import { type MemoryBudget, respondListing } from './listing-response.ts'
import { Query } from './parameters.ts'
import type { Workspace, WorkspaceCall } from './route.ts'
import { searchContent } from '../search/content-search.ts'
import {
  type FindLimits,
  findNames,
  type FindResult,
  nameSearch,
  type NameTest,
} from '../search/name-search.ts'
import { parseSearch } from '../search/search-request.ts'
import { respondEvents, type ServerSentEvent } from '../../http/event-stream.ts'
import { toServerSentEvent } from '../watch/watch-service.ts'

/** Sufficient for a large repository. */
export const FIND_LIMITS: FindLimits = { maxResults: 200, maxNodes: 300_000, maxDepth: 100, timeMs: 10_000 }
export const MAX_FOUND = 5_000
/** File names have at most 255 bytes; a pattern needs little more. */
const MAX_NAME_CHARS = 1_024

interface Dependencies {
  readonly workspace: Workspace
}

export const SEARCH_HANDLERS = { 'GET /workspace/search': searchFiles, 'GET /workspace/find': findFiles }

/** `GET /workspace/search`: content search, as NDJSON. */
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

/** `GET /workspace/find`: names that contain `q`, or match it when it has `*`, `?` or `[`. */
async function findFiles(call: WorkspaceCall, deps: Dependencies): Promise<Response> {
  const query = new Query(call.url)
  const text = query.text('q')
  if (text === '') throw new SandwireError('bad_request', 'Cannot use parameter "q": empty')
  const path = query.text('path', '.')
  const maxResults = query.integer('limit', { min: 1, max: MAX_FOUND }) ?? FIND_LIMITS.maxResults
  const isMatch = nameSearch(checkPatternLength(text))
  const search = async (): Promise<object> => {
    const limits = { ...FIND_LIMITS, maxResults }
    const { found, isTruncated } = await find(path, isMatch, limits, { call, deps })
    const results = found.map((entry) => ({ path: pathIn(path, entry.path), kind: entry.kind }))
    return { results, truncated: isTruncated }
  }
  return respondListing(search, budgetOf(call, deps))
}

/** Separate from the budget of listings, so that slow searches do not delay them. */
function budgetOf({ request }: WorkspaceCall, { workspace }: Dependencies): MemoryBudget {
  return { memory: workspace.searches, signal: request.signal }
}

interface Context {
  readonly call: WorkspaceCall
  readonly deps: Dependencies
}

function find(
  path: string,
  isMatch: NameTest,
  limits: FindLimits,
  { call, deps }: Context,
): Promise<FindResult> {
  const { files } = deps.workspace
  return findNames(path, isMatch, limits, { files, signal: call.request.signal })
}

export function checkPatternLength(text: string): string {
  if (text.length <= MAX_NAME_CHARS) return text
  throw new SandwireError('bad_request', `Cannot use parameter "q": more than ${MAX_NAME_CHARS} characters`)
}

export const WATCH_HANDLERS = { 'GET /workspace/watch': watchFolder }

/** `GET /workspace/watch`: server-sent events until the client disconnects. */
async function watchFolder(
  { url, request }: WorkspaceCall,
  { workspace }: { readonly workspace: Workspace },
): Promise<Response> {
  const query = new Query(url)
  const watching = await workspace.watches.open(query.text('path', '.'), query.flag('recursive'))
  const next = async (): Promise<ServerSentEvent | undefined> => {
    const notice = await watching.next()
    return notice && toServerSentEvent(notice)
  }
  return respondEvents({ next, close: watching.close }, request)
}
