import type { Action } from '../audit/actions.ts'
import {
  type Answer,
  BYTES_BODY,
  CONTENT_BODY,
  EVENTS,
  FILE,
  JSON_ANSWER,
  JSON_BODY,
  LINES,
  NO_BODY,
  type RequestBody,
  TAR,
} from './traffic.ts'

/** One way through control into the workspace of a sandbox. What is not said here does not get through. */
export interface GatewayRoute {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** As the router spells it. */
  readonly path: string
  /** Where it leads at sandboxd; `:id` is that of the public path. */
  readonly upstream: string
  /** Reading takes the scope `connect`, changing takes `exec`; both take the right to work in the sandbox. */
  readonly does: 'read' | 'change'
  /** What the audit calls it; what only asks is not written down. */
  readonly action?: Action
  /** A parameter which says, by not being 0, that the request goes on with an earlier one. */
  readonly continues?: string
  /** Whether errors are `{"error": …}` or, as existing front ends read them, `{"detail": …}`. */
  readonly speaks: 'newer' | 'contract'
  /** Parameters that go along, and what they say; the others are refused. */
  readonly parameters: Readonly<Record<string, string>>
  /** Of these, those that may be given several times. */
  readonly repeatable: readonly string[]
  readonly body: RequestBody
  readonly answer: Answer
  /** Until the answer has to begin, counted from the last byte of the request. */
  readonly answerMs: number
  /** Until the answer has to be over: by then the right to it is to be shown again. */
  readonly longestMs: number
  /** Can be asked again when nobody answered. Only without a body: a stream is there once. */
  readonly isIdempotent: boolean
  /** What it takes of a person's budget for what makes a sandbox work hard; 0 for what does not. */
  readonly cost: number
  /** Whether HEAD is asked of sandboxd too. */
  readonly hasHead: boolean
  readonly summary: string
}

/** Work on one file or folder. */
const FILE_ANSWER_MS = 20_000
/** Work on a whole repository. */
const LONG_ANSWER_MS = 40_000
const MINUTE_MS = 60_000
/** What watches comes back after this, and shows its right again. */
const WATCH_MS = 15 * MINUTE_MS
/** A large file on a slow line; it goes on with `Range` or an offset. */
const TRANSFER_MS = 60 * MINUTE_MS

const PATH = { path: 'Path in the workspace; bytes that are no UTF-8 percent-encoded' }
const SANDBOX = '/api/workspaces/:sandbox'

type Row = Pick<GatewayRoute, 'method' | 'summary'> & Partial<GatewayRoute>

const USUAL = {
  parameters: {},
  repeatable: [],
  body: NO_BODY,
  answer: JSON_ANSWER,
  answerMs: FILE_ANSWER_MS,
  cost: 0,
  hasHead: false,
} as const

function newer(tail: string, row: Row): GatewayRoute {
  const path = `${SANDBOX}/${tail}`
  const does = row.does ?? (row.action === undefined ? 'read' : 'change')
  const isIdempotent = row.method === 'GET'
  const upstream = `/workspace/${tail}`
  const longestMs = row.longestMs ?? (row.answerMs ?? FILE_ANSWER_MS) + MINUTE_MS
  return { ...USUAL, path, upstream, does, speaks: 'newer', isIdempotent, ...row, longestMs }
}

function contract(tail: string, row: Row): GatewayRoute {
  return { ...newer(`contract/${tail}`, row), path: `/api/${tail}`, speaks: 'contract' }
}

const FILES: readonly GatewayRoute[] = [
  newer('tree', {
    method: 'GET',
    parameters: { ...PATH, limit: 'Entries at most', after: 'Go on behind this name' },
    cost: 1,
    summary: 'One level of a folder',
  }),
  newer('stat', { method: 'GET', parameters: PATH, summary: 'One file or folder, without its content' }),
  newer('file', {
    method: 'GET',
    parameters: PATH,
    answer: FILE,
    longestMs: TRANSFER_MS,
    hasHead: true,
    summary: 'The bytes of a file; takes Range, If-None-Match and If-Range',
  }),
  newer('file', {
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
  newer('file', {
    method: 'DELETE',
    action: 'file.delete',
    parameters: { ...PATH, recursive: '1: with all that is in it' },
    answerMs: LONG_ANSWER_MS,
    summary: 'Removes a file or folder; takes If-Match',
  }),
  newer('mkdir', { method: 'POST', action: 'file.write', body: JSON_BODY, summary: 'Makes a folder' }),
  newer('rename', {
    method: 'POST',
    action: 'file.move',
    body: JSON_BODY,
    summary: 'Renames or moves a file or folder',
  }),
  newer('copy', {
    method: 'POST',
    action: 'file.write',
    body: JSON_BODY,
    answerMs: LONG_ANSWER_MS,
    cost: 5,
    summary: 'Copies a file or folder',
  }),
]

const TRANSFERS: readonly GatewayRoute[] = [
  newer('uploads/:id', {
    method: 'PUT',
    action: 'file.write',
    parameters: { ...PATH, offset: 'Where these bytes belong' },
    continues: 'offset',
    body: BYTES_BODY,
    longestMs: TRANSFER_MS,
    summary: 'Appends to an upload, whose id the client makes of 32 hex digits',
  }),
  newer('uploads/:id', {
    method: 'GET',
    // Of who may write alone: it is about what is not there yet.
    does: 'change',
    parameters: PATH,
    summary: 'How much of an upload has arrived',
  }),
  newer('uploads/:id', {
    method: 'POST',
    action: 'file.write',
    body: JSON_BODY,
    answerMs: LONG_ANSWER_MS,
    summary: 'Finishes an upload: the file is there, whole',
  }),
  newer('uploads/:id', {
    method: 'DELETE',
    action: 'file.delete',
    parameters: PATH,
    summary: 'Drops an upload',
  }),
  newer('archive', {
    method: 'GET',
    parameters: { ...PATH, after: 'Go on behind this entry' },
    answer: TAR,
    longestMs: TRANSFER_MS,
    cost: 10,
    summary: 'A folder as a tar stream',
  }),
  newer('archive', {
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
  newer('watch', {
    method: 'GET',
    parameters: { ...PATH, recursive: '1: with all folders in it' },
    answer: EVENTS,
    longestMs: WATCH_MS,
    cost: 1,
    summary: 'Changes as server-sent events; ends after 15 minutes at the latest',
  }),
  newer('find', {
    method: 'GET',
    parameters: { ...PATH, q: 'Part of the name, or a pattern', limit: 'Results at most' },
    cost: 5,
    answerMs: LONG_ANSWER_MS,
    summary: 'Files and folders by name',
  }),
  newer('search', {
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

const git = (tail: string, row: Row): GatewayRoute =>
  newer(`git/${tail}`, {
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
  newer('git/repositories', {
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

const CONTRACT: readonly GatewayRoute[] = [
  contract('tree', { method: 'GET', parameters: PATH, cost: 1, summary: 'One level of a folder' }),
  contract('file', { method: 'GET', parameters: PATH, summary: 'The text of a file' }),
  contract('file', {
    method: 'PUT',
    action: 'file.write',
    parameters: PATH,
    body: CONTENT_BODY,
    summary: 'Writes the text of a file',
  }),
  contract('file', {
    method: 'DELETE',
    action: 'file.delete',
    parameters: PATH,
    answerMs: LONG_ANSWER_MS,
    summary: 'Removes a file, or a folder with all that is in it',
  }),
  contract('file/rename', {
    method: 'POST',
    action: 'file.move',
    body: JSON_BODY,
    summary: 'Renames a file or folder',
  }),
  contract('file/move', {
    method: 'POST',
    action: 'file.move',
    body: JSON_BODY,
    summary: 'Moves a file or folder into a folder',
  }),
  contract('search', {
    method: 'GET',
    parameters: { ...PATH, q: 'Part of the name, or a pattern' },
    answerMs: LONG_ANSWER_MS,
    cost: 5,
    summary: 'Files and folders by name',
  }),
  contract('git/status', {
    method: 'GET',
    answerMs: LONG_ANSWER_MS,
    cost: 2,
    summary: 'What has changed since the last commit',
  }),
  contract('git/diff', {
    method: 'GET',
    parameters: PATH,
    answerMs: LONG_ANSWER_MS,
    cost: 2,
    summary: 'Differences of a file to the last commit',
  }),
  contract('git/show', {
    method: 'GET',
    parameters: PATH,
    answerMs: LONG_ANSWER_MS,
    cost: 2,
    summary: 'A file at the last commit',
  }),
]

/** All of them. */
export const GATEWAY: readonly GatewayRoute[] = [...FILES, ...TRANSFERS, ...SEARCHES, ...GIT, ...CONTRACT]

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

/** Routes of the contract that control answers itself. */
const OWN_CONTRACT = ['/api/sessions', '/api/capabilities', '/api/config', '/api/project']
const CONTRACT_PATHS: ReadonlySet<string> = new Set([...CONTRACT.map(({ path }) => path), ...OWN_CONTRACT])

/** Whether whoever asks there expects errors in the contract's shape. */
export function isContractPath(pathname: string): boolean {
  return CONTRACT_PATHS.has(pathname)
}

/** Whether bodies sent there stream through and are bounded by this table. */
export function isGatewayPath(pathname: string): boolean {
  return pathname.startsWith('/api/workspaces/') || isContractPath(pathname)
}
