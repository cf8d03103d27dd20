import { COMPAT_WORKSPACE_ROUTES, isCompatPath } from '../compat/workspace-routes.ts'
import { type GatewayRoute, LONG_ANSWER_MS, MINUTE_MS, nativeRoute, PATH, type RouteRow } from './route.ts'
import { BYTES_BODY, EVENTS, FILE, JSON_BODY, LINES, TAR } from './traffic.ts'

/** What watches comes back after this, and shows its right again. */
const WATCH_MS = 15 * MINUTE_MS
/** A large file on a slow line; it goes on with `Range` or an offset. */
const TRANSFER_MS = 60 * MINUTE_MS

const FILES: readonly GatewayRoute[] = [
  nativeRoute('tree', {
    method: 'GET',
    parameters: { ...PATH, limit: 'Entries at most', after: 'Go on behind this name' },
    cost: 1,
    summary: 'One level of a folder',
  }),
  nativeRoute('stat', {
    method: 'GET',
    parameters: PATH,
    summary: 'One file or folder, without its content',
  }),
  nativeRoute('file', {
    method: 'GET',
    parameters: PATH,
    answer: FILE,
    longestMs: TRANSFER_MS,
    hasHead: true,
    summary: 'The bytes of a file; takes Range, If-None-Match and If-Range',
  }),
  nativeRoute('file', {
    method: 'PUT',
    action: 'file.write',
    parameters: {
      ...PATH,
      mode: 'Permissions as a decimal number, as `stat` tells them: 420 is rw-r--r--',
      mtimeMs: 'Time of change, in milliseconds since 1970',
      parents: '1: make its folders',
    },
    body: BYTES_BODY,
    longestMs: TRANSFER_MS,
    summary: 'Writes a file in one step; takes If-Match and If-None-Match',
  }),
  nativeRoute('file', {
    method: 'DELETE',
    action: 'file.delete',
    parameters: { ...PATH, recursive: '1: with all that is in it' },
    answerMs: LONG_ANSWER_MS,
    summary: 'Removes a file or folder; takes If-Match',
  }),
  nativeRoute('mkdir', { method: 'POST', action: 'file.write', body: JSON_BODY, summary: 'Makes a folder' }),
  nativeRoute('rename', {
    method: 'POST',
    action: 'file.move',
    body: JSON_BODY,
    summary: 'Renames or moves a file or folder',
  }),
  nativeRoute('copy', {
    method: 'POST',
    action: 'file.write',
    body: JSON_BODY,
    answerMs: LONG_ANSWER_MS,
    cost: 5,
    summary: 'Copies a file or folder',
  }),
]

const TRANSFERS: readonly GatewayRoute[] = [
  nativeRoute('uploads/:id', {
    method: 'PUT',
    action: 'file.write',
    parameters: { ...PATH, offset: 'Where these bytes belong' },
    continues: 'offset',
    body: BYTES_BODY,
    longestMs: TRANSFER_MS,
    summary: 'Appends to an upload, whose id the client makes of 32 hex digits',
  }),
  nativeRoute('uploads/:id', {
    method: 'GET',
    // Of who may write alone: it is about what is not there yet.
    does: 'change',
    parameters: PATH,
    summary: 'How much of an upload has arrived',
  }),
  nativeRoute('uploads/:id', {
    method: 'POST',
    action: 'file.write',
    body: JSON_BODY,
    answerMs: LONG_ANSWER_MS,
    summary: 'Finishes an upload: the file is there, whole',
  }),
  nativeRoute('uploads/:id', {
    method: 'DELETE',
    action: 'file.delete',
    parameters: PATH,
    summary: 'Drops an upload',
  }),
  nativeRoute('archive', {
    method: 'GET',
    parameters: { ...PATH, after: 'Go on behind this entry' },
    answer: TAR,
    longestMs: TRANSFER_MS,
    cost: 10,
    summary: 'A folder as a tar stream',
  }),
  nativeRoute('archive', {
    method: 'PUT',
    action: 'file.write',
    parameters: PATH,
    body: BYTES_BODY,
    longestMs: TRANSFER_MS,
    cost: 10,
    summary: 'Unpacks a tar stream into a folder',
  }),
]

const SEARCHES: readonly GatewayRoute[] = [
  nativeRoute('watch', {
    method: 'GET',
    parameters: { ...PATH, recursive: '1: with all folders in it' },
    answer: EVENTS,
    longestMs: WATCH_MS,
    cost: 1,
    summary: 'Changes as server-sent events; ends after 15 minutes at the latest',
  }),
  nativeRoute('find', {
    method: 'GET',
    parameters: { ...PATH, q: 'Part of the name, or a pattern', limit: 'Results at most' },
    cost: 5,
    answerMs: LONG_ANSWER_MS,
    summary: 'Files and folders by name',
  }),
  nativeRoute('search', {
    method: 'GET',
    parameters: {
      ...PATH,
      q: 'Text to look for',
      regex: '1: it is a regular expression',
      case: 'sensitive, insensitive or smart',
      glob: 'Only in files of this pattern, or not with ! before it; may be repeated',
      context: 'Lines before and behind',
      limit: 'Matches at most',
      hidden: '1: in hidden files too',
      ignored: '1: in files too that git ignores',
    },
    repeatable: ['glob'],
    answer: LINES,
    answerMs: LONG_ANSWER_MS,
    cost: 5,
    summary: 'Content of files, one JSON object a line as they are found',
  }),
]

const REPO = { repo: 'Folder of the repository; the workspace when absent' }

const git = (tail: string, row: RouteRow): GatewayRoute =>
  nativeRoute(`git/${tail}`, {
    cost: 2,
    answerMs: LONG_ANSWER_MS,
    ...row,
    parameters:
      row.method === 'GET'
        ? {
            ...REPO,
            ...row.parameters,
          }
        : {},
  })

const GIT: readonly GatewayRoute[] = [
  nativeRoute('git/repositories', {
    method: 'GET',
    parameters: {},
    cost: 2,
    answerMs: LONG_ANSWER_MS,
    summary: 'Folders with a repository, in the workspace and up to two folders below',
  }),
  git('status', { method: 'GET', summary: 'What has changed' }),
  git('diff', {
    method: 'GET',
    parameters: {
      ...PATH,
      old: 'Where the path was before it was renamed',
      staged: '1: of what is staged',
      from: 'Commit',
      to: 'Commit; alone, with the one before it',
    },
    summary: 'Differences in the working tree, in what is staged, or between commits',
  }),
  git('show', { method: 'GET', parameters: { ...PATH, ref: 'Commit' }, summary: 'A file at a commit' }),
  git('log', {
    method: 'GET',
    parameters: {
      ...PATH,
      ref: 'Commit to begin at',
      limit: 'Commits at most',
      after: 'Go on behind this one',
    },
    summary: 'Commits, newest first',
  }),
  git('branches', { method: 'GET', summary: 'Branches, and which one is checked out' }),
  git('stage', { method: 'POST', action: 'git.change', body: JSON_BODY, summary: 'Stages paths' }),
  git('unstage', { method: 'POST', action: 'git.change', body: JSON_BODY, summary: 'Unstages paths' }),
  git('discard', {
    method: 'POST',
    action: 'git.change',
    body: JSON_BODY,
    summary: 'Throws changes of paths away',
  }),
  git('commit', { method: 'POST', action: 'git.commit', body: JSON_BODY, summary: 'Commits what is staged' }),
]

/** Every route that is forwarded to a workspace. */
export const GATEWAY: readonly GatewayRoute[] = [
  ...FILES,
  ...TRANSFERS,
  ...SEARCHES,
  ...GIT,
  ...COMPAT_WORKSPACE_ROUTES,
]

/** A route as the tables of policies and of the audit name it. */
export function nameOfRoute({ method, path }: Pick<GatewayRoute, 'method' | 'path'>): string {
  return `${method} ${path}`
}

const BY_NAME: ReadonlyMap<string, GatewayRoute> = new Map(
  GATEWAY.map((route) => [nameOfRoute(route), route]),
)

export function findRoute(name: string): GatewayRoute | undefined {
  return BY_NAME.get(name)
}

/** Whether bodies sent there stream through and are bounded by this table. */
export function isGatewayPath(pathname: string): boolean {
  return pathname.startsWith('/api/workspaces/') || isCompatPath(pathname)
}
