/** A request that carries a hostile input. */
export interface HostileRequest {
  readonly method: string
  readonly path: string
  readonly body?: string | Uint8Array<ArrayBuffer>
}

const W = '/api/workspaces/local'
const ID = 'ab'.repeat(16)

/** A route and the parameter of it that carries the input. */
export interface InputRoute {
  /** Method and path as in the OpenAPI document. */
  readonly route: string
  /** A path, or a text that is passed on to git or ripgrep. */
  readonly takes: 'path' | 'argument' | 'nothing'
  /** Percent-encoded. */
  readonly query?: (encoded: string) => HostileRequest
  readonly json?: (text: string) => HostileRequest
}

const OPENAPI_PREFIX = '/api/workspaces/{sandbox}'

function inQuery(method: string, tail: string, name: string, more = '', body?: string): InputRoute {
  const takes = ['path', 'after', 'old', 'repo'].includes(name) ? 'path' : 'argument'
  const base = tail.startsWith('/') ? tail : `${W}/${tail}`
  return {
    route: `${method} ${tail.startsWith('/') ? tail : `${OPENAPI_PREFIX}/${tail.replace(ID, '{id}')}`}`,
    takes,
    query: (encoded) => ({
      method,
      path: `${base}?${more}${name}=${encoded}`,
      ...(body === undefined ? {} : { body }),
    }),
  }
}

function inJson(tail: string, takes: InputRoute['takes'], toBody: (text: string) => object): InputRoute {
  const path = tail.startsWith('/') ? tail : `${W}/${tail}`
  return {
    route: `POST ${tail.startsWith('/') ? tail : `${OPENAPI_PREFIX}/${tail.replace(ID, '{id}')}`}`,
    takes,
    json: (text) => ({ method: 'POST', path, body: JSON.stringify(toBody(text)) }),
  }
}

let made = 0
/** A name that no file has yet. */
const fresh = (): string => `made-${(made += 1)}`

const FILES: readonly InputRoute[] = [
  ...['tree', 'stat', 'file', 'archive', 'watch'].map((tail) => inQuery('GET', tail, 'path')),
  inQuery('GET', 'tree', 'after'),
  inQuery('GET', 'archive', 'after', 'path=plain&'),
  inQuery('PUT', 'file', 'path', '', 'x'),
  inQuery('PUT', 'file', 'path', 'parents=1&', 'x'),
  inQuery('DELETE', 'file', 'path'),
  inQuery('DELETE', 'file', 'path', 'recursive=1&'),
  inJson('mkdir', 'path', (path) => ({ path, parents: true })),
  inJson('rename', 'path', (from) => ({ from, to: fresh() })),
  inJson('rename', 'path', (to) => ({ from: 'plain/f', to, replace: true })),
  inJson('copy', 'path', (from) => ({ from, to: fresh() })),
  inJson('copy', 'path', (to) => ({ from: 'plain/f', to, replace: true })),
  inQuery('PUT', `uploads/${ID}`, 'path', 'offset=0&', 'x'),
  inQuery('GET', `uploads/${ID}`, 'path'),
  inJson(`uploads/${ID}`, 'path', (path) => ({ path, size: 1 })),
  inQuery('DELETE', `uploads/${ID}`, 'path'),
  inQuery('PUT', 'archive', 'path', '', ''),
]

const SEARCHES: readonly InputRoute[] = [
  inQuery('GET', 'find', 'path', 'q=secret&'),
  inQuery('GET', 'find', 'q'),
  inQuery('GET', 'search', 'path', 'q=needle&hidden=1&ignored=1&'),
  inQuery('GET', 'search', 'q', 'hidden=1&ignored=1&'),
  inQuery('GET', 'search', 'q', 'regex=1&'),
  inQuery('GET', 'search', 'glob', 'q=needle&'),
]

const GIT: readonly InputRoute[] = [
  // Takes no input; the repository itself is hostile.
  {
    route: `GET ${OPENAPI_PREFIX}/git/repositories`,
    takes: 'nothing',
    query: () => ({ method: 'GET', path: `${W}/git/repositories` }),
  },
  inQuery('GET', 'git/diff', 'old', 'path=plain/f&'),
  ...['status', 'diff', 'log', 'branches'].map((tail) => inQuery('GET', `git/${tail}`, 'repo')),
  ...['diff', 'show', 'log'].map((tail) => inQuery('GET', `git/${tail}`, 'path')),
  inQuery('GET', 'git/diff', 'from'),
  inQuery('GET', 'git/diff', 'to', 'from=HEAD&'),
  inQuery('GET', 'git/show', 'ref', 'path=plain/f&'),
  inQuery('GET', 'git/log', 'ref'),
  ...['stage', 'unstage', 'discard'].flatMap((tail) => [
    inJson(`git/${tail}`, 'path', (path) => ({ paths: [path] })),
    inJson(`git/${tail}`, 'argument', (argument) => ({ paths: [argument] })),
    inJson(`git/${tail}`, 'path', (repo) => ({ repo, paths: ['plain/f'] })),
  ]),
  inJson('git/commit', 'argument', (message) => ({ message, amend: true })),
  inJson('git/commit', 'argument', (name) => ({ message: 'm', author: { name, email: name }, amend: true })),
]

const COMPAT: readonly InputRoute[] = [
  // Takes no input; the repository itself is hostile.
  {
    route: 'GET /api/git/status',
    takes: 'nothing',
    query: () => ({ method: 'GET', path: '/api/git/status' }),
  },
  ...['/api/tree', '/api/file', '/api/git/diff', '/api/git/show'].map((route) =>
    inQuery('GET', route, 'path'),
  ),
  inQuery('GET', '/api/search', 'path', 'q=*&'),
  inQuery('GET', '/api/search', 'q'),
  inQuery('PUT', '/api/file', 'path', '', '{"content":"x"}'),
  inQuery('DELETE', '/api/file', 'path'),
  inJson('/api/file/rename', 'path', (old_path) => ({ old_path, new_path: fresh() })),
  inJson('/api/file/rename', 'path', (new_path) => ({ old_path: 'plain/f', new_path })),
  inJson('/api/file/move', 'path', (src_path) => ({ src_path, dest_dir: 'plain' })),
  inJson('/api/file/move', 'path', (dest_dir) => ({ src_path: 'plain/f', dest_dir })),
]

/** Every workspace route, once for each parameter that takes a path or an argument. */
export const INPUT_ROUTES: readonly InputRoute[] = [...FILES, ...SEARCHES, ...GIT, ...COMPAT]
