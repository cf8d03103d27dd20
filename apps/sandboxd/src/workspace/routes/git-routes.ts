import { ERRORS, SandwireError } from '@sandwire/protocol'
import { respondJson } from '../../http/respond.ts'
import { commit, type CommitRequest } from '../git/commit.ts'
import { readDiff } from '../git/diff.ts'
import { LOG_LIMIT, LOG_MAX_LIMIT, readBranches, readLog, showFile, textOf } from '../git/history.ts'
import { findRepositories } from '../git/repositories.ts'
import { checkPath, checkRef, openRepository, readProgress } from '../git/repository.ts'
import { discard, stage, unstage } from '../git/stage.ts'
import { readStatus, type StatusEntry } from '../git/status.ts'
import { JsonFields, Query } from './parameters.ts'
import type { Workspace, WorkspaceCall } from './route.ts'

/** The part of a workspace that git needs. */
export interface GitDeps {
  readonly workspace: Pick<Workspace, 'files' | 'runTool' | 'root' | 'gitScratch' | 'gitLocks'>
}

export const GIT_HANDLERS = {
  'GET /workspace/git/repositories': repositories,
  'GET /workspace/git/status': status,
  'GET /workspace/git/diff': diff,
  'GET /workspace/git/show': show,
  'GET /workspace/git/log': log,
  'GET /workspace/git/branches': branches,
  'POST /workspace/git/stage': stagePaths,
  'POST /workspace/git/unstage': unstagePaths,
  'POST /workspace/git/discard': discardPaths,
  'POST /workspace/git/commit': commitStaged,
}

function openRead(
  query: Query,
  { request }: WorkspaceCall,
  { workspace }: GitDeps,
): ReturnType<typeof openRepository> {
  return openRepository(workspace, checkPath(query.text('repo', '.')), request.signal)
}

function optionalPath(query: Query, name = 'path'): string | undefined {
  const path = query.optional(name)
  return path === undefined ? undefined : checkPath(path)
}

function optionalRef(query: Query, name: string): string | undefined {
  const ref = query.optional(name)
  return ref === undefined ? undefined : checkRef(ref, name)
}

async function repositories(_: WorkspaceCall, { workspace }: GitDeps): Promise<Response> {
  const { paths, truncated } = await findRepositories(workspace.files)
  return respondJson({ repositories: paths.map((path) => ({ path })), truncated })
}

async function status(call: WorkspaceCall, deps: GitDeps): Promise<Response> {
  using repository = await openRead(new Query(call.url), call, deps)
  const { head, entries, truncated, hasUntracked } = await readStatus(repository)
  const state = await readProgress(repository)
  const files = entries.map(showEntry)
  return respondJson({ head, state, files, truncated, untracked: hasUntracked })
}

function showEntry(entry: StatusEntry): unknown {
  if (entry.kind !== 'changed') return entry
  const { isSubmodule, ...changed } = entry
  return { ...changed, submodule: isSubmodule }
}

async function diff(call: WorkspaceCall, deps: GitDeps): Promise<Response> {
  const query = new Query(call.url)
  const [path, oldPath] = [optionalPath(query), optionalPath(query, 'old')]
  if (path === undefined && oldPath !== undefined)
    throw new SandwireError('bad_request', 'Cannot use parameter "old": it requires "path"')
  const staged = query.flag('staged')
  const [from, to] = [optionalRef(query, 'from'), optionalRef(query, 'to')]
  using repository = await openRead(query, call, deps)
  const { files, text, isLossy, truncated } = await readDiff(repository, { path, oldPath, staged, from, to })
  const shown = files.map(({ isBinary, ...file }) => ({ ...file, binary: isBinary }))
  return respondJson({ files: shown, diff: text, lossy: isLossy, truncated })
}

async function show(call: WorkspaceCall, deps: GitDeps): Promise<Response> {
  const query = new Query(call.url)
  const path = checkPath(query.text('path'))
  const ref = optionalRef(query, 'ref') ?? 'HEAD'
  using repository = await openRead(query, call, deps)
  const file = await showFile(repository, { path, ref })
  const text = textOf(file)
  const { commit: oid, kind, sizeBytes: size, truncated } = file
  const encoding = text === undefined ? 'base64' : 'utf-8'
  const content = text ?? file.bytes.toString('base64')
  return respondJson({ path, commit: oid, kind, size, encoding, content, truncated })
}

async function log(call: WorkspaceCall, deps: GitDeps): Promise<Response> {
  const query = new Query(call.url)
  const path = optionalPath(query)
  const limit = query.integer('limit', { min: 1, max: LOG_MAX_LIMIT }) ?? LOG_LIMIT
  const [ref, after] = [optionalRef(query, 'ref'), optionalRef(query, 'after')]
  using repository = await openRead(query, call, deps)
  return respondJson(await readLog(repository, { ref, path, limit, after }))
}

async function branches(call: WorkspaceCall, deps: GitDeps): Promise<Response> {
  using repository = await openRead(new Query(call.url), call, deps)
  return respondJson(await readBranches(repository))
}

/** A change is finished even if the client disconnects, so that git leaves no lock behind. */
async function stagePaths({ request }: WorkspaceCall, { workspace }: GitDeps): Promise<Response> {
  const { repo, paths } = await readPathsBody(request)
  using repository = await openRepository(workspace, repo)
  await stage(repository, paths)
  return respondJson({ staged: paths.length })
}

async function unstagePaths({ request }: WorkspaceCall, { workspace }: GitDeps): Promise<Response> {
  const { repo, paths } = await readPathsBody(request)
  using repository = await openRepository(workspace, repo)
  await unstage(repository, paths)
  return respondJson({ unstaged: paths.length })
}

async function discardPaths({ request }: WorkspaceCall, { workspace }: GitDeps): Promise<Response> {
  const { repo, paths, untracked } = await readDiscardBody(request)
  using repository = await openRepository(workspace, repo)
  const removed = await discard(repository, { paths, untracked })
  return respondJson({ discarded: paths.length, removed })
}

async function commitStaged(
  { request, requestId }: WorkspaceCall,
  { workspace }: GitDeps,
): Promise<Response> {
  const { repo, ...options } = await readCommitBody(request)
  using repository = await openRepository(workspace, repo)
  const result = await commit(repository, options)
  if ('oid' in result) return respondJson({ commit: result.oid })
  const message = 'Cannot commit: author unknown; set user.name and user.email, or name an author'
  return respondJson(
    { error: { code: 'git_failed', message, request_id: requestId, reason: result.reason } },
    { status: ERRORS.git_failed.status, headers: { 'x-request-id': requestId } },
  )
}

const MAX_PATHS = 10_000
const MAX_MESSAGE_CHARS = 64 * 1024
const MAX_NAME_CHARS = 256

function bad(name: string, why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use field "${name}": ${why}`)
}

function readPaths(fields: JsonFields): readonly string[] {
  const paths = fields.value('paths')
  if (!Array.isArray(paths) || paths.length === 0 || paths.length > MAX_PATHS)
    throw bad('paths', `expected a list of 1 to ${MAX_PATHS} paths`)
  return paths.map((path: unknown) => {
    if (typeof path !== 'string') throw bad('paths', 'expected texts')
    return checkPath(path)
  })
}

/** The repository of a request; default: the workspace. */
function readRepo(fields: JsonFields): string {
  return fields.value('repo') === undefined ? '.' : checkPath(fields.text('repo'))
}

async function readPathsBody(
  request: Request,
): Promise<{ readonly repo: string; readonly paths: readonly string[] }> {
  const fields = await JsonFields.read(request, ['repo', 'paths'])
  return { repo: readRepo(fields), paths: readPaths(fields) }
}

async function readDiscardBody(
  request: Request,
): Promise<{ readonly repo: string; readonly paths: readonly string[]; readonly untracked: boolean }> {
  const fields = await JsonFields.read(request, ['repo', 'paths', 'untracked'])
  return { repo: readRepo(fields), paths: readPaths(fields), untracked: fields.flag('untracked') }
}

async function readCommitBody(request: Request): Promise<CommitRequest & { readonly repo: string }> {
  const fields = await JsonFields.read(request, ['repo', 'message', 'author', 'amend'])
  const message = fields.text('message')
  if (message.trim() === '' || message.includes('\0')) throw bad('message', 'expected a message')
  if (message.length > MAX_MESSAGE_CHARS) throw bad('message', `longer than ${MAX_MESSAGE_CHARS} characters`)
  return { repo: readRepo(fields), message, author: readAuthor(fields), amend: fields.flag('amend') }
}

function readAuthor(fields: JsonFields): CommitRequest['author'] {
  const author = fields.value('author')
  if (author === undefined) return undefined
  const known = new Map<string, unknown>(
    typeof author === 'object' && author !== null ? Object.entries(author) : [],
  )
  const [name, email] = [known.get('name'), known.get('email')]
  if (!isPersonText(name) || !isPersonText(email) || known.size > 2)
    throw bad('author', 'expected an object with name and email')
  return { name, email }
}

/** Valid in a commit header: one line without angle brackets. */
function isPersonText(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.trim() !== '' &&
    value.length <= MAX_NAME_CHARS &&
    !/[\p{C}<>]/u.test(value)
  )
}
