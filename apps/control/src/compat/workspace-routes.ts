import { type GatewayRoute, LONG_ANSWER_MS, nativeRoute, PATH, type RouteRow } from '../gateway/route.ts'
import { CONTENT_BODY, JSON_BODY } from '../gateway/traffic.ts'

function compatRoute(tail: string, row: RouteRow): GatewayRoute {
  return { ...nativeRoute(`contract/${tail}`, row), path: `/api/${tail}`, api: 'compat' }
}

/** Workspace routes of the compat API. */
export const COMPAT_WORKSPACE_ROUTES: readonly GatewayRoute[] = [
  compatRoute('tree', { method: 'GET', parameters: PATH, cost: 1, summary: 'One level of a folder' }),
  compatRoute('file', { method: 'GET', parameters: PATH, summary: 'The text of a file' }),
  compatRoute('file', {
    method: 'PUT',
    action: 'file.write',
    parameters: PATH,
    body: CONTENT_BODY,
    summary: 'Writes the text of a file',
  }),
  compatRoute('file', {
    method: 'DELETE',
    action: 'file.delete',
    parameters: PATH,
    answerMs: LONG_ANSWER_MS,
    summary: 'Removes a file, or a folder with all that is in it',
  }),
  compatRoute('file/rename', {
    method: 'POST',
    action: 'file.move',
    body: JSON_BODY,
    summary: 'Renames a file or folder',
  }),
  compatRoute('file/move', {
    method: 'POST',
    action: 'file.move',
    body: JSON_BODY,
    summary: 'Moves a file or folder into a folder',
  }),
  compatRoute('search', {
    method: 'GET',
    parameters: { ...PATH, q: 'Part of the name, or a pattern' },
    answerMs: LONG_ANSWER_MS,
    cost: 5,
    summary: 'Files and folders by name',
  }),
  compatRoute('git/status', {
    method: 'GET',
    answerMs: LONG_ANSWER_MS,
    cost: 2,
    summary: 'What has changed since the last commit',
  }),
  compatRoute('git/diff', {
    method: 'GET',
    parameters: PATH,
    answerMs: LONG_ANSWER_MS,
    cost: 2,
    summary: 'Differences of a file to the last commit',
  }),
  compatRoute('git/show', {
    method: 'GET',
    parameters: PATH,
    answerMs: LONG_ANSWER_MS,
    cost: 2,
    summary: 'A file at the last commit',
  }),
]

/** Compat routes that control answers itself. */
const CONTROL_PATHS = ['/api/sessions', '/api/capabilities', '/api/config', '/api/project']
const COMPAT_PATHS: ReadonlySet<string> = new Set([
  ...COMPAT_WORKSPACE_ROUTES.map(({ path }) => path),
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
