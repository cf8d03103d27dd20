import { COMPAT_WORKSPACE_ROUTES, type CompatWorkspaceRouteName } from '@sandwire/internal-api'
import {
  CONTENT_BODY,
  GIT_READ,
  JSON_BODY,
  type ProxyRoute,
  REPOSITORY_RESPONSE_MS,
  type RouteSettings,
  toProxyRoutes,
} from '../workspace-proxy/route.ts'

const SETTINGS: Readonly<Record<CompatWorkspaceRouteName, RouteSettings>> = {
  'GET /workspace/compat/tree': { cost: 1, summary: 'List one level of a folder' },
  'GET /workspace/compat/file': { summary: 'Read the text of a file' },
  'PUT /workspace/compat/file': {
    action: 'file.write',
    body: CONTENT_BODY,
    summary: 'Write the text of a file',
  },
  'DELETE /workspace/compat/file': {
    action: 'file.delete',
    firstByteMs: REPOSITORY_RESPONSE_MS,
    summary: 'Delete a file, or a folder with its contents',
  },
  'POST /workspace/compat/file/rename': {
    action: 'file.move',
    body: JSON_BODY,
    summary: 'Rename a file or folder',
  },
  'POST /workspace/compat/file/move': {
    action: 'file.move',
    body: JSON_BODY,
    summary: 'Move a file or folder into a folder',
  },
  'GET /workspace/compat/search': {
    firstByteMs: REPOSITORY_RESPONSE_MS,
    cost: 5,
    summary: 'Find files and folders by name',
  },
  'GET /workspace/compat/git/status': { ...GIT_READ, summary: 'Show changes since the last commit' },
  'GET /workspace/compat/git/diff': {
    ...GIT_READ,
    summary: 'Show the differences of a file to the last commit',
  },
  'GET /workspace/compat/git/show': { ...GIT_READ, summary: 'Show a file at the last commit' },
}

/** Workspace routes of the compat API. */
export const COMPAT_PROXY_ROUTES: readonly ProxyRoute[] = toProxyRoutes(COMPAT_WORKSPACE_ROUTES, SETTINGS)

/** Compat routes that control answers itself. */
const CONTROL_PATHS = ['/api/sessions', '/api/capabilities', '/api/config', '/api/project']
const COMPAT_PATHS: ReadonlySet<string> = new Set([
  ...COMPAT_PROXY_ROUTES.map(({ path }) => path),
  ...CONTROL_PATHS,
])

/** True for HTTP routes of the compat API, whose errors are `{"detail": …}`. */
export function isCompatPath(pathname: string): boolean {
  return COMPAT_PATHS.has(pathname)
}

/** True for the compat API's sockets, which speak its own JSON messages. */
export function isCompatSocket(pathname: string): boolean {
  return pathname.startsWith('/ws/')
}
