import { WORKSPACE_ROUTES, type WorkspaceRouteName } from '@sandwire/internal-api'
import { COMPAT_PROXY_ROUTES, isCompatPath } from '../compat/workspace-routes.ts'
import {
  BYTES_BODY,
  EVENTS,
  FILE,
  GIT_READ,
  JSON_BODY,
  LINES,
  MINUTE_MS,
  type ProxyRoute,
  REPOSITORY_RESPONSE_MS,
  type RouteSettings,
  TAR,
  toProxyRoutes,
} from './route.ts'

/** Clients of a watch reconnect after this time and are authorized again. */
const WATCH_MS = 15 * MINUTE_MS
/** A large file on a slow connection; it is continued with `Range` or an offset. */
const TRANSFER_MS = 60 * MINUTE_MS

const GIT_CHANGE = { ...GIT_READ, action: 'git.change', body: JSON_BODY } as const

const SETTINGS: Readonly<Record<WorkspaceRouteName, RouteSettings>> = {
  'GET /workspace/tree': { cost: 1, summary: 'List one level of a folder' },
  'GET /workspace/stat': { summary: 'Describe a file or folder' },
  'GET /workspace/file': {
    response: FILE,
    lastByteMs: TRANSFER_MS,
    hasHead: true,
    summary: 'Read a file; supports Range, If-None-Match and If-Range',
  },
  'PUT /workspace/file': {
    action: 'file.write',
    body: BYTES_BODY,
    lastByteMs: TRANSFER_MS,
    summary: 'Write a file atomically; supports If-Match and If-None-Match',
  },
  'DELETE /workspace/file': {
    action: 'file.delete',
    firstByteMs: REPOSITORY_RESPONSE_MS,
    summary: 'Delete a file or folder; supports If-Match',
  },
  'POST /workspace/mkdir': { action: 'file.write', body: JSON_BODY, summary: 'Create a folder' },
  'POST /workspace/rename': {
    action: 'file.move',
    body: JSON_BODY,
    summary: 'Rename or move a file or folder',
  },
  'POST /workspace/copy': {
    action: 'file.write',
    body: JSON_BODY,
    firstByteMs: REPOSITORY_RESPONSE_MS,
    cost: 5,
    summary: 'Copy a file or folder',
  },

  'PUT /workspace/uploads/:id': {
    action: 'file.write',
    continues: 'offset',
    body: BYTES_BODY,
    lastByteMs: TRANSFER_MS,
    summary: 'Append to an upload; the client chooses its id of 32 hex digits',
  },
  'GET /workspace/uploads/:id': { summary: 'Show how much of an upload has arrived' },
  'POST /workspace/uploads/:id': {
    action: 'file.write',
    body: JSON_BODY,
    firstByteMs: REPOSITORY_RESPONSE_MS,
    summary: 'Complete an upload: the file appears as a whole',
  },
  'DELETE /workspace/uploads/:id': { action: 'file.delete', summary: 'Discard an upload' },
  'GET /workspace/archive': {
    response: TAR,
    lastByteMs: TRANSFER_MS,
    cost: 10,
    summary: 'Download a folder as a tar stream',
  },
  'PUT /workspace/archive': {
    action: 'file.write',
    body: BYTES_BODY,
    lastByteMs: TRANSFER_MS,
    cost: 10,
    summary: 'Unpack a tar stream into a folder',
  },

  'GET /workspace/watch': {
    response: EVENTS,
    lastByteMs: WATCH_MS,
    cost: 1,
    summary: 'Stream changes as server-sent events, for at most 15 minutes',
  },
  'GET /workspace/tmux': { summary: 'List windows and panes of tmux' },
  'POST /workspace/tmux': {
    action: 'tmux.change',
    runsCommands: true,
    body: JSON_BODY,
    summary: 'Create, split, select, resize, swap, rename or kill windows and panes of tmux',
  },
  'GET /workspace/tmux/events': {
    response: EVENTS,
    lastByteMs: WATCH_MS,
    cost: 1,
    summary: 'Stream windows and panes of tmux after each change, for at most 15 minutes',
  },

  'GET /workspace/find': {
    cost: 5,
    firstByteMs: REPOSITORY_RESPONSE_MS,
    summary: 'Find files and folders by name',
  },
  'GET /workspace/search': {
    response: LINES,
    firstByteMs: REPOSITORY_RESPONSE_MS,
    cost: 5,
    summary: 'Search file contents; one JSON object per line, as matches are found',
  },

  'GET /workspace/git/repositories': {
    ...GIT_READ,
    summary: 'List repositories in the workspace and up to two folders below',
  },
  'GET /workspace/git/status': { ...GIT_READ, summary: 'Show changed files' },
  'GET /workspace/git/diff': {
    ...GIT_READ,
    summary: 'Show differences in the working tree, the index or between commits',
  },
  'GET /workspace/git/show': { ...GIT_READ, summary: 'Show a file at a commit' },
  'GET /workspace/git/log': { ...GIT_READ, summary: 'List commits, newest first' },
  'GET /workspace/git/branches': { ...GIT_READ, summary: 'List branches and the current one' },
  'POST /workspace/git/stage': { ...GIT_CHANGE, summary: 'Stage paths' },
  'POST /workspace/git/unstage': { ...GIT_CHANGE, summary: 'Unstage paths' },
  'POST /workspace/git/discard': { ...GIT_CHANGE, summary: 'Discard changes of paths' },
  'POST /workspace/git/commit': { ...GIT_CHANGE, action: 'git.commit', summary: 'Commit the index' },
}

/** The file routes that control exposes. Anything else does not reach a sandbox. */
export const PROXY_ROUTES: readonly ProxyRoute[] = [
  ...toProxyRoutes(WORKSPACE_ROUTES, SETTINGS),
  ...COMPAT_PROXY_ROUTES,
]

/** The key of a route in the tables of policies and audit actions. */
export function nameOfRoute({ method, path }: Pick<ProxyRoute, 'method' | 'path'>): string {
  return `${method} ${path}`
}

const BY_NAME: ReadonlyMap<string, ProxyRoute> = new Map(
  PROXY_ROUTES.map((route) => [nameOfRoute(route), route]),
)

export function findProxyRoute(name: string): ProxyRoute | undefined {
  return BY_NAME.get(name)
}

function isTmuxPath(pathname: string): boolean {
  return /^\/api\/sandboxes\/[^/]+\/tmux(\/|$)/.test(pathname)
}

/** True when bodies sent to this path are streamed and bounded by the table above. */
export function isProxiedPath(pathname: string): boolean {
  return pathname.startsWith('/api/workspaces/') || isTmuxPath(pathname) || isCompatPath(pathname)
}
