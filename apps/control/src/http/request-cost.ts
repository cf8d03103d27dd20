/** Most that one request costs. */
const MAX_COST = 20
/** Rows of the audit, and bytes of a log, that cost as much as a small request. */
const ROWS_PER_COST = 50
const LOG_BYTES_PER_COST = 64 * 1024
const RUNS_PER_COST = 25
/** Examining rows of the audit that a filter leaves out. */
const FILTER_COST = 8

function numberIn(query: URLSearchParams, name: string, fallback: number): number {
  const value = Number(query.get(name) ?? fallback)
  return Number.isFinite(value) && value > 0 ? value : fallback
}

/** Routes that cost more than a small request; a text with a slash at the end stands for all paths below it. */
const COSTS: readonly (readonly [path: string | RegExp, costOf: (query: URLSearchParams) => number])[] = [
  ['/api/openapi.json', () => 2],
  [
    '/api/audit',
    (query) =>
      1 +
      numberIn(query, 'limit', 100) / ROWS_PER_COST +
      (query.has('sandbox') || query.has('action') ? FILTER_COST : 0),
  ],
  ['/logs/', (query) => 1 + numberIn(query, 'bytes', LOG_BYTES_PER_COST) / LOG_BYTES_PER_COST],
  // Each has a view of its settings and its state.
  ['/api/sandboxes', () => 4],
  ['/api/runs', (query) => 1 + numberIn(query, 'limit', 100) / RUNS_PER_COST],
  ['/api/conversations', (query) => 1 + numberIn(query, 'limit', 100) / RUNS_PER_COST],
  [/^\/api\/conversations\/[^/]+\/entries$/, (query) => 1 + numberIn(query, 'limit', 1_000) / ROWS_PER_COST],
  // Git reads every file of the sandbox.
  [/^\/api\/conversations\/[^/]+\/publish$/, () => 4],
  [/^\/api\/runs\/[^/]+\/events$/, (query) => 1 + numberIn(query, 'limit', 1_000) / ROWS_PER_COST],
  [/^\/api\/sandboxes\/[^/]+\/checkpoints$/, () => 4],
  // Reads and unpacks the manifests of a version.
  ['/files/', () => 8],
  // Ask every sandbox of the account.
  ['/api/account/sessions', () => 4],
  ['/api/sessions', () => 4],
  ['/metrics', () => 4],
]

function matches(path: string | RegExp, pathname: string): boolean {
  if (path instanceof RegExp) return path.test(pathname)
  return path.endsWith('/') ? pathname.startsWith(path) : pathname === path
}

/** What a request costs control, in small requests. Work of the host and in sandboxes has limits of its own. */
export function costOf({ url }: Pick<Request, 'url'>): number {
  const { pathname, searchParams } = new URL(url)
  const [, cost] = COSTS.find(([path]) => matches(path, pathname)) ?? []
  return cost === undefined ? 1 : Math.min(MAX_COST, Math.ceil(cost(searchParams)))
}
