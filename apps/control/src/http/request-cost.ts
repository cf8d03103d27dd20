/** Most that one request costs. */
const MAX_COST = 20
/** Rows of the audit, and bytes of a log, that cost as much as a small request. */
const ROWS_PER_COST = 50
const LOG_BYTES_PER_COST = 64 * 1024
/** Examining rows of the audit that a filter leaves out. */
const FILTER_COST = 8

function numberIn(query: URLSearchParams, name: string, fallback: number): number {
  const value = Number(query.get(name) ?? fallback)
  return Number.isFinite(value) && value > 0 ? value : fallback
}

/** Routes that cost more than a small request; a path with a slash at the end stands for all below it. */
const COSTS: readonly (readonly [path: string, costOf: (query: URLSearchParams) => number])[] = [
  ['/api/openapi.json', () => 2],
  [
    '/api/audit',
    (query) =>
      1 +
      numberIn(query, 'limit', 100) / ROWS_PER_COST +
      (query.has('sandbox') || query.has('action') ? FILTER_COST : 0),
  ],
  ['/logs/', (query) => 1 + numberIn(query, 'bytes', LOG_BYTES_PER_COST) / LOG_BYTES_PER_COST],
  // Reads and unpacks the manifests of a version.
  ['/files/', () => 8],
  // Ask every sandbox of the account.
  ['/api/account/sessions', () => 4],
  ['/api/sessions', () => 4],
  ['/metrics', () => 4],
]

/** What a request costs control, in small requests. Work of the host and in sandboxes has limits of its own. */
export function costOf({ url }: Pick<Request, 'url'>): number {
  const { pathname, searchParams } = new URL(url)
  const [, cost] =
    COSTS.find(([path]) => (path.endsWith('/') ? pathname.startsWith(path) : pathname === path)) ?? []
  return cost === undefined ? 1 : Math.min(MAX_COST, Math.ceil(cost(searchParams)))
}
