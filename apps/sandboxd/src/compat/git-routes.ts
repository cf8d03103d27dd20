import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import { respondJson } from '../http/respond.ts'
import { type Diff, readDiff } from '../workspace/git/diff.ts'
import { checkPath, openRepository } from '../workspace/git/repository.ts'
import { showFile, textOf } from '../workspace/git/history.ts'
import { type Change, readStatus, type StatusEntry } from '../workspace/git/status.ts'
import { Query } from '../workspace/routes/parameters.ts'
import type { GitDeps } from '../workspace/routes/git-routes.ts'
import type { WorkspaceCall } from '../workspace/routes/route.ts'
import { missing, respondUnprocessable, traversalError } from './responses.ts'

/** Git routes of the older API. They serve the repository at the root of the workspace and report git's errors in a 200 response. */
export const GIT_HANDLERS = {
  'GET /workspace/compat/git/status': status,
  'GET /workspace/compat/git/diff': diff,
  'GET /workspace/compat/git/show': show,
}

/** Errors that mean there is no usable repository. */
const NO_REPOSITORY: readonly ErrorCode[] = ['not_a_repository', 'command_not_found', 'git_failed']
/** Errors that the response reports in its `error` field. */
const REPORTED: readonly ErrorCode[] = [...NO_REPOSITORY, 'timed_out']

function hasCode(codes: readonly ErrorCode[], caught: unknown): caught is SandwireError {
  return caught instanceof SandwireError && codes.includes(caught.code)
}

async function status({ request }: WorkspaceCall, { workspace }: GitDeps): Promise<Response> {
  let repository
  try {
    repository = await openRepository(workspace, '.', request.signal)
  } catch (caught) {
    if (hasCode(NO_REPOSITORY, caught)) return respondJson({ is_repo: false, files: [] })
    throw caught
  }
  using open = repository
  const { entries, truncated } = await readStatus(open)
  const files = Object.fromEntries(toCompatFiles(entries))
  return respondJson({ is_repo: true, available: true, files, ...(truncated ? { truncated } : {}) })
}

async function diff({ request, url }: WorkspaceCall, { workspace }: GitDeps): Promise<Response> {
  const path = new Query(url).all('path').at(-1)
  if (path === undefined) return respondUnprocessable([missing(['query', 'path'])])
  const repositoryPath = toRepositoryPath(path, workspace.root)
  try {
    using repository = await openRepository(workspace, '.', request.signal)
    const found = await readDiff(repository, { path: repositoryPath, staged: false, from: 'HEAD' })
    return respondJson({ diff: found.text, path, ...describeTruncation(found) })
  } catch (caught) {
    if (!hasCode(REPORTED, caught)) throw caught
    return respondJson({ diff: '', path, error: `Git error: ${caught.message}` })
  }
}

function describeTruncation({ truncated }: Diff): { error?: string } {
  return truncated === false ? {} : { error: 'Diff is too large: this is its beginning' }
}

async function show({ request, url }: WorkspaceCall, { workspace }: GitDeps): Promise<Response> {
  const path = new Query(url).all('path').at(-1)
  if (path === undefined) return respondUnprocessable([missing(['query', 'path'])])
  const repositoryPath = toRepositoryPath(path, workspace.root)
  const respondNull = (error: string): Response => respondJson({ content: null, path, error })
  try {
    using repository = await openRepository(workspace, '.', request.signal)
    const file = await showFile(repository, { path: repositoryPath, ref: 'HEAD' })
    if (file.truncated) return respondNull('File too large')
    const content = textOf(file)
    return content === undefined ? respondNull('Binary file') : respondJson({ content, path })
  } catch (caught) {
    if (hasCode([...REPORTED, 'file_not_found', 'is_a_folder', 'special_file'], caught))
      return respondNull('Not in HEAD')
    throw caught
  }
}

/** Converts to a path in the repository. The older API accepts absolute paths and `..` that stay inside. */
function toRepositoryPath(path: string, root: string): string {
  const isAbsolute = path.startsWith('/')
  if (isAbsolute && path !== root && !path.startsWith(`${root}/`)) throw traversalError(path)
  const names: string[] = []
  for (const name of (isAbsolute ? path.slice(root.length) : path).split('/')) {
    if (name === '..' && names.pop() === undefined) throw traversalError(path)
    if (name !== '..' && name !== '' && name !== '.') names.push(name)
  }
  try {
    return checkPath(names.join('/') || '.')
  } catch (cause) {
    throw traversalError(path, cause)
  }
}

/** Status letters of the older API: conflict, deleted, added, modified, untracked. */
type CompatStatus = 'C' | 'D' | 'A' | 'M' | 'U'

/** Decides when a path has two statuses. */
const PRIORITY: Readonly<Record<CompatStatus, number>> = { C: 5, D: 4, A: 3, M: 2, U: 1 }

const STATUS_OF_CHANGE: Readonly<Record<Change, CompatStatus>> = {
  M: 'M',
  T: 'M',
  A: 'A',
  D: 'D',
  R: 'M',
  C: 'A',
}

function statusOf(entry: StatusEntry): CompatStatus {
  switch (entry.kind) {
    case 'conflict':
      return 'C'
    case 'untracked':
      return 'U'
    case 'changed':
      return STATUS_OF_CHANGE[entry.staged ?? entry.unstaged ?? 'M']
  }
}

/** Git lists conflicts after all other changes; the older API sorts all tracked files by path. */
function sortByPath(entries: readonly StatusEntry[]): readonly StatusEntry[] {
  if (!entries.some(({ kind }) => kind === 'conflict')) return entries
  const byPath = (left: StatusEntry, right: StatusEntry): number =>
    Buffer.compare(Buffer.from(left.path), Buffer.from(right.path))
  const isTracked = ({ kind }: StatusEntry): boolean => kind !== 'untracked'
  return [...entries.filter(isTracked).toSorted(byPath), ...entries.filter((entry) => !isTracked(entry))]
}

export function toCompatFiles(entries: readonly StatusEntry[]): ReadonlyMap<string, CompatStatus> {
  const files = new Map<string, CompatStatus>()
  for (const entry of sortByPath(entries)) {
    const status = statusOf(entry)
    const known = files.get(entry.path)
    if (known === undefined || PRIORITY[status] > PRIORITY[known]) files.set(entry.path, status)
  }
  return files
}
