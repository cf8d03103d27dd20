import path from 'node:path'
import type { WorkspaceChange } from '@sandwire/agent'
import { SandwireError } from '@sandwire/protocol'
import {
  askRepository,
  copyIndex,
  hashOf,
  openScratch,
  readRepository,
  type TreeContext,
} from './base-tree.ts'
import { compareWorkspace, type DiffFiles } from './make-diff.ts'
import { git, type PrivateGit } from './private-git.ts'

const REMOTE = 'origin'
/** Branches of the remote, newest first, of which one must have a commit of `HEAD`. */
const MAX_BRANCHES = 1_000
const SHA1 = /^[0-9a-f]{40}$/

/**
 * Compares the workspace with the newest commit of `HEAD` that the remote has, so that one commit of all changes can follow it;
 * local commits are part of them. Throws `conflict` when there is no such commit.
 */
export async function makeChange(context: TreeContext, files: DiffFiles): Promise<WorkspaceChange> {
  const { runTool, workspace, asUser } = context
  const { commit, submodules } = await readRepository(context)
  if (commit === null) throw cannot('the workspace has no git repository with a commit')
  const remote = await askText(context, ['config', '--get', `remote.${REMOTE}.url`])
  if (remote === '') throw cannot(`the repository in the workspace has no remote "${REMOTE}"`)
  const parent = await findParent(context)
  const tree = await hashOf(context, `${parent}^{tree}`)
  const alternates = await askText(context, ['rev-parse', '--git-path', 'objects'])
  if (!SHA1.test(parent) || tree === null)
    throw cannot(`no commit of the repository in the workspace is on a branch of "${REMOTE}"`)
  using scratch = openScratch(context)
  const index = path.join(scratch.path, 'index')
  const baseIndex = path.join(scratch.path, 'base-index')
  const plan: PrivateGit = {
    runTool,
    workspace,
    gitDir: path.join(scratch.path, 'git'),
    index,
    objects: path.join(scratch.path, 'objects'),
    alternates,
  }
  await git({ ...plan, index: baseIndex }, ['read-tree', tree])
  asUser(() => copyIndex(baseIndex, index))
  // Code 1: some files differ.
  await git(plan, ['update-index', '-q', '--refresh'], { allowed: [0, 1] })
  const base = {
    treeHash: tree,
    isCommit: true,
    submodules: submodules.map((each) => ({ ...each, state: '' })),
  }
  const diff = await compareWorkspace({ context, plan, base, baseIndex, scratch: scratch.path, ...files })
  return { remote, parent, branch: await findUpstream(context), diff }
}

/** Empty when there is none. */
async function findParent(context: TreeContext): Promise<string> {
  const refs = ['for-each-ref', '--sort=-committerdate', '--format=%(objectname)', `--count=${MAX_BRANCHES}`]
  const branches = (await askText(context, [...refs, `refs/remotes/${REMOTE}`])).split('\n').filter(Boolean)
  return branches.length === 0 ? '' : askText(context, ['merge-base', 'HEAD', ...new Set(branches)])
}

/** The branch of the remote that the current branch follows; null: none. */
async function findUpstream(context: TreeContext): Promise<string | null> {
  const name = await askText(context, ['rev-parse', '--abbrev-ref', 'HEAD@{upstream}'])
  return name.startsWith(`${REMOTE}/`) ? name.slice(REMOTE.length + 1) : null
}

async function askText(context: TreeContext, args: readonly string[]): Promise<string> {
  return (await askRepository(context, args))?.toString().trim() ?? ''
}

function cannot(problem: string): SandwireError {
  return new SandwireError('conflict', `Cannot publish the changes: ${problem}`)
}
