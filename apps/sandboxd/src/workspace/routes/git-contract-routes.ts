import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import { respondJson } from '../../http/respond.ts'
import { showPath } from '../beneath/show-path.ts'
import { toContractFiles } from '../git/contract-status.ts'
import { type Diff, readDiff } from '../git/diff.ts'
import { checkPath } from '../git/names.ts'
import { openRepository } from '../git/repository.ts'
import { showFile, textOf } from '../git/show.ts'
import { readStatus } from '../git/status.ts'
import { Query } from './query.ts'
import type { Workspace, WorkspaceCall, WorkspaceRoutes } from './route.ts'
import { missing, respondFlaws } from './unprocessable.ts'

interface Deps {
  readonly workspace: Pick<Workspace, 'files' | 'runTool' | 'root'>
}

/** Git as the contract has it: about the repository at the root, and with an answer even where git has none. */
export const GIT_CONTRACT_ROUTES = {
  '/workspace/contract/git/status': { GET: { right: 'read', parameters: 'any', handle: status } },
  '/workspace/contract/git/diff': { GET: { right: 'read', parameters: 'any', handle: diff } },
  '/workspace/contract/git/show': { GET: { right: 'read', parameters: 'any', handle: show } },
} as const satisfies WorkspaceRoutes

/** Refusals that mean that there is nothing to say. */
const NO_GIT: readonly ErrorCode[] = ['not_a_repository', 'command_not_found', 'git_failed']
/** Refusals that git answers for. */
const OF_GIT: readonly ErrorCode[] = [...NO_GIT, 'timed_out']

function isOne(codes: readonly ErrorCode[], caught: unknown): caught is SandwireError {
  return caught instanceof SandwireError && codes.includes(caught.code)
}

async function status({ request }: WorkspaceCall, { workspace }: Deps): Promise<Response> {
  let repository
  try {
    repository = await openRepository(workspace, '.', request.signal)
  } catch (caught) {
    if (isOne(NO_GIT, caught)) return respondJson({ is_repo: false, files: [] })
    throw caught
  }
  using open = repository
  const { entries, truncated } = await readStatus(open)
  const files = Object.fromEntries(toContractFiles(entries))
  return respondJson({ is_repo: true, available: true, files, ...(truncated ? { truncated } : {}) })
}

async function diff({ request, url }: WorkspaceCall, { workspace }: Deps): Promise<Response> {
  const path = new Query(url).all('path').at(-1)
  if (path === undefined) return respondFlaws([missing(['query', 'path'])])
  const named = nameInRepository(path, workspace.root)
  try {
    using repository = await openRepository(workspace, '.', request.signal)
    const found = await readDiff(repository, { path: named, staged: false, from: 'HEAD' })
    return respondJson({ diff: found.text, path, ...describeCut(found) })
  } catch (caught) {
    if (!isOne(OF_GIT, caught)) throw caught
    return respondJson({ diff: '', path, error: `Git error: ${caught.message}` })
  }
}

function describeCut({ truncated }: Diff): { error?: string } {
  return truncated === false ? {} : { error: 'Diff is too large: this is its beginning' }
}

async function show({ request, url }: WorkspaceCall, { workspace }: Deps): Promise<Response> {
  const path = new Query(url).all('path').at(-1)
  if (path === undefined) return respondFlaws([missing(['query', 'path'])])
  const named = nameInRepository(path, workspace.root)
  const nothing = (error: string): Response => respondJson({ content: null, path, error })
  try {
    using repository = await openRepository(workspace, '.', request.signal)
    const file = await showFile(repository, { path: named, ref: 'HEAD' })
    if (file.truncated) return nothing('File too large')
    const content = textOf(file)
    return content === undefined ? nothing('Binary file') : respondJson({ content, path })
  } catch (caught) {
    if (isOne([...OF_GIT, 'file_not_found', 'is_a_folder', 'special_file'], caught))
      return nothing('Not in HEAD')
    throw caught
  }
}

/** The path in the repository. The contract takes absolute ones and `..` as long as they stay inside. */
function nameInRepository(path: string, root: string): string {
  const isAbsolute = path.startsWith('/')
  if (isAbsolute && path !== root && !path.startsWith(`${root}/`)) throw traversal(path)
  const names: string[] = []
  for (const name of (isAbsolute ? path.slice(root.length) : path).split('/')) {
    if (name === '..' && names.pop() === undefined) throw traversal(path)
    if (name !== '..' && name !== '' && name !== '.') names.push(name)
  }
  try {
    return checkPath(names.join('/') || '.')
  } catch (cause) {
    throw traversal(path, cause)
  }
}

function traversal(path: string, cause?: unknown): SandwireError {
  return new SandwireError('path_refused', `Path traversal detected: ${showPath(path).slice(1, -1)}`, {
    cause,
  })
}
