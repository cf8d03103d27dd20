import type { WorkspaceRoute } from '@sandwire/internal-api'
import type { Action } from '../audit/actions.ts'

const KIB = 1024
const MIB = 1024 * KIB
const GIB = 1024 * MIB

/** Request body that a route accepts. */
interface RequestBody {
  /** `json` is parsed by control, which refuses duplicate keys; `content` (JSON with a file's text) and `bytes` are streamed. */
  readonly kind: 'nothing' | 'json' | 'content' | 'bytes'
  readonly maxBytes: number
}

const NO_BODY: RequestBody = { kind: 'nothing', maxBytes: 0 }
/** A few paths and flags. */
export const JSON_BODY: RequestBody = { kind: 'json', maxBytes: 256 * KIB }
export const CONTENT_BODY: RequestBody = { kind: 'content', maxBytes: 16 * MIB }
/** A file or a tar stream. */
export const BYTES_BODY: RequestBody = { kind: 'bytes', maxBytes: 8 * GIB }

/** Response that a route may return. */
interface ResponseBody {
  /** Content type without parameters. */
  readonly type: string
  /** Adds `content-disposition: attachment`, so that a browser never renders it. */
  readonly isDownload: boolean
  /**
   * The format shows whether it is complete, by its last line or block. workerd ends a response of unknown length that was
   * interrupted like a complete one, so other formats need a length.
   */
  readonly hasEndMarker: boolean
  readonly maxBytes: number
}

const TEXT = { isDownload: false, hasEndMarker: true } as const
const JSON_RESPONSE: ResponseBody = { ...TEXT, type: 'application/json', maxBytes: 64 * MIB }
export const EVENTS: ResponseBody = { ...TEXT, type: 'text/event-stream', maxBytes: 256 * MIB }
export const LINES: ResponseBody = { ...TEXT, type: 'application/x-ndjson', maxBytes: 256 * MIB }
export const TAR: ResponseBody = {
  type: 'application/x-tar',
  isDownload: true,
  hasEndMarker: true,
  maxBytes: 64 * GIB,
}
export const FILE: ResponseBody = {
  type: 'application/octet-stream',
  isDownload: true,
  hasEndMarker: false,
  maxBytes: 1024 * GIB,
}

/** How control proxies one file route of sandboxd. */
interface ProxySettings {
  /** Name in the audit; absent: requests are not audited. */
  readonly action?: Action
  /** Parameter whose value other than 0 marks the continuation of an earlier request. */
  readonly continues?: string
  readonly body: RequestBody
  readonly response: ResponseBody
  /** Until the response must begin, from the last byte of the request. */
  readonly firstByteMs: number
  /** Until the response must end. Longer transfers are continued by another request, which is authorized again. */
  readonly lastByteMs: number
  /** What it takes of the account's budget for requests that are expensive for a sandbox. */
  readonly cost: number
  /** It can start shells, so the caller needs the right to run any command. */
  readonly runsCommands: boolean
  /** HEAD requests are sent to sandboxd too. */
  readonly hasHead: boolean
  readonly summary: string
}

export interface ProxyRoute extends ProxySettings, WorkspaceRoute {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** Public path, as the router matches it. */
  readonly path: string
  /** Path at sandboxd; `:id` is the one of the public path. */
  readonly upstream: string
  /** Can be repeated when there was no response. Not with a body: a stream can be sent once. */
  readonly isIdempotent: boolean
}

/** Work on one file or folder. */
const FILE_RESPONSE_MS = 20_000
/** Work on a whole repository. */
export const REPOSITORY_RESPONSE_MS = 40_000
export const MINUTE_MS = 60_000

export const GIT_READ = { cost: 2, firstByteMs: REPOSITORY_RESPONSE_MS } as const

export type RouteSettings = Pick<ProxySettings, 'summary'> & Partial<ProxySettings>

const METHODS = ['GET', 'PUT', 'POST', 'DELETE'] as const

function publicPath({ api }: WorkspaceRoute, upstream: string): string {
  if (api === 'compat') return upstream.replace('/workspace/compat/', '/api/')
  return upstream.startsWith('/workspace/tmux')
    ? upstream.replace('/workspace/', '/api/sandboxes/:sandbox/')
    : upstream.replace('/workspace/', '/api/workspaces/:sandbox/')
}

function toProxyRoute(name: string, route: WorkspaceRoute, settings: RouteSettings): ProxyRoute {
  const [verb, upstream = ''] = name.split(' ')
  const method = METHODS.find((known) => known === verb)
  if (method === undefined) throw new Error(`Not a method: ${verb}`)
  const firstByteMs = settings.firstByteMs ?? FILE_RESPONSE_MS
  return {
    body: NO_BODY,
    response: JSON_RESPONSE,
    cost: 0,
    runsCommands: false,
    hasHead: false,
    ...route,
    ...settings,
    method,
    path: publicPath(route, upstream),
    upstream,
    isIdempotent: method === 'GET',
    firstByteMs,
    lastByteMs: settings.lastByteMs ?? firstByteMs + MINUTE_MS,
  }
}

/** Adds control's settings to the routes of sandboxd; every route needs settings. */
export function toProxyRoutes<Name extends string>(
  routes: Readonly<Record<Name, WorkspaceRoute>>,
  settings: Readonly<Record<Name, RouteSettings>>,
): readonly ProxyRoute[] {
  const byName: Readonly<Record<string, RouteSettings>> = settings
  return Object.entries<WorkspaceRoute>(routes).flatMap(([name, route]) => {
    const own = byName[name]
    return own === undefined ? [] : [toProxyRoute(name, route, own)]
  })
}
