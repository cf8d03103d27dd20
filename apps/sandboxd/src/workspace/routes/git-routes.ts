import { SandwireError } from '@sandwire/protocol'
import { respondJson } from '../../http/respond.ts'
import { readBranches } from '../git/branches.ts'
import { commit } from '../git/commit.ts'
import { readDiff } from '../git/diff.ts'
import { discard } from '../git/discard.ts'
import { LOG_LIMIT, LOG_MAX_LIMIT, readLog } from '../git/log.ts'
import { checkPath, checkRef } from '../git/names.ts'
import { readProgress } from '../git/progress.ts'
import { findRepositories } from '../git/repositories.ts'
import { openRepository } from '../git/repository.ts'
import { showFile, textOf } from '../git/show.ts'
import { stage, unstage } from '../git/stage.ts'
import { readStatus } from '../git/status.ts'
import type { StatusEntry } from '../git/status-parser.ts'
import { readCommitBody, readDiscardBody, readPathsBody } from './git-body.ts'
import { Query } from './query.ts'
import type { Workspace, WorkspaceCall, WorkspaceRoute, WorkspaceRoutes } from './route.ts'

/** What git needs of a workspace. */
interface Deps {
  readonly workspace: Pick<Workspace, 'files' | 'runTool' | 'root'>
}

/** What git knows, and what can be done about it. `repo` names a folder with a repository of its own. */
export const GIT_ROUTES = {
  '/workspace/git/repositories': { GET: { right: 'read', parameters: [], handle: repositories } },
  '/workspace/git/status': { GET: reader([], status) },
  '/workspace/git/diff': { GET: reader(['path', 'old', 'staged', 'from', 'to'], diff) },
  '/workspace/git/show': { GET: reader(['path', 'ref'], show) },
  '/workspace/git/log': { GET: reader(['ref', 'path', 'limit', 'after'], log) },
  '/workspace/git/branches': { GET: reader([], branches) },
  '/workspace/git/stage': { POST: changer(stagePaths) },
  '/workspace/git/unstage': { POST: changer(unstagePaths) },
  '/workspace/git/discard': { POST: changer(discardPaths) },
  '/workspace/git/commit': { POST: changer(commitStaged) },
} as const satisfies WorkspaceRoutes

/** A route that needs no more than this of a workspace. */
export interface GitRoute extends Pick<WorkspaceRoute, 'right' | 'parameters'> {
  readonly handle: (call: WorkspaceCall, deps: Deps) => Promise<Response>
}

function reader(parameters: readonly string[], handle: GitRoute['handle']): GitRoute {
  return { right: 'read', parameters: ['repo', ...parameters], handle }
}

function changer(handle: GitRoute['handle']): GitRoute {
  return { right: 'change', parameters: [], handle }
}

function openRead(
  query: Query,
  { request }: WorkspaceCall,
  { workspace }: Deps,
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

async function repositories(_: WorkspaceCall, { workspace }: Deps): Promise<Response> {
  const { paths, truncated } = await findRepositories(workspace.files)
  return respondJson({ repositories: paths.map((path) => ({ path })), truncated })
}

async function status(call: WorkspaceCall, deps: Deps): Promise<Response> {
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

async function diff(call: WorkspaceCall, deps: Deps): Promise<Response> {
  const query = new Query(call.url)
  const [path, oldPath] = [optionalPath(query), optionalPath(query, 'old')]
  if (path === undefined && oldPath !== undefined)
    throw new SandwireError('bad_request', 'Cannot use parameter "old": it goes with "path"')
  const staged = query.flag('staged')
  const [from, to] = [optionalRef(query, 'from'), optionalRef(query, 'to')]
  using repository = await openRead(query, call, deps)
  const { files, text, isLossy, truncated } = await readDiff(repository, { path, oldPath, staged, from, to })
  const shown = files.map(({ isBinary, ...file }) => ({ ...file, binary: isBinary }))
  return respondJson({ files: shown, diff: text, lossy: isLossy, truncated })
}

async function show(call: WorkspaceCall, deps: Deps): Promise<Response> {
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

async function log(call: WorkspaceCall, deps: Deps): Promise<Response> {
  const query = new Query(call.url)
  const path = optionalPath(query)
  const limit = query.whole('limit', { min: 1, max: LOG_MAX_LIMIT }) ?? LOG_LIMIT
  const [ref, after] = [optionalRef(query, 'ref'), optionalRef(query, 'after')]
  using repository = await openRead(query, call, deps)
  return respondJson(await readLog(repository, { ref, path, limit, after }))
}

async function branches(call: WorkspaceCall, deps: Deps): Promise<Response> {
  using repository = await openRead(new Query(call.url), call, deps)
  return respondJson(await readBranches(repository))
}

/** What has been begun is finished, whether or not the caller waits for it: it leaves no lock behind. */
async function stagePaths({ request }: WorkspaceCall, { workspace }: Deps): Promise<Response> {
  const { repo, paths } = await readPathsBody(request)
  using repository = await openRepository(workspace, repo)
  await stage(repository, paths)
  return respondJson({ staged: paths.length })
}

async function unstagePaths({ request }: WorkspaceCall, { workspace }: Deps): Promise<Response> {
  const { repo, paths } = await readPathsBody(request)
  using repository = await openRepository(workspace, repo)
  await unstage(repository, paths)
  return respondJson({ unstaged: paths.length })
}

async function discardPaths({ request }: WorkspaceCall, { workspace }: Deps): Promise<Response> {
  const { repo, paths, untracked } = await readDiscardBody(request)
  using repository = await openRepository(workspace, repo)
  const removed = await discard(repository, { paths, untracked })
  return respondJson({ discarded: paths.length, removed })
}

async function commitStaged({ request }: WorkspaceCall, { workspace }: Deps): Promise<Response> {
  const { repo, ...wanted } = await readCommitBody(request)
  using repository = await openRepository(workspace, repo)
  return respondJson({ commit: await commit(repository, wanted) })
}
