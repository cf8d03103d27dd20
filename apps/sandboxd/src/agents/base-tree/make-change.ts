import path from 'node:path'
import type { WorkspaceChange } from '@sandwire/agent'
import { SandwireError } from '@sandwire/protocol'
import {
  askRepository,
  copyIndex,
  hashOf,
  openScratch,
  privateGitIn,
  readRepository,
  type TreeContext,
} from './base-tree.ts'
import { compareWorkspace, type DiffFiles } from './make-diff.ts'
import { git } from './private-git.ts'

const REMOTE = 'origin'
/** Branches of the remote, newest first, of which one must have a commit of `HEAD`. */
const MAX_BRANCHES = 1_000
/** Of branches to which agents push. What they have is still to be published. */
const AGENT_BRANCH = 'agent/'
const SHA1 = /^[0-9a-f]{40}$/

interface ChangeOptions extends DiffFiles {
  /** The branch with which the work began. */
  readonly ref?: string | undefined
}

/**
 * Compares the workspace with the newest commit of `HEAD` that the remote has, so that one commit of all changes can follow it;
 * local commits are part of them. Throws `conflict` when there is no such commit.
 */
export async function makeChange(
  context: TreeContext,
  { ref, ...files }: ChangeOptions,
): Promise<WorkspaceChange> {
  const { asUser } = context
  const { commit, submodules } = await readRepository(context)
  if (commit === null) throw cannot('the workspace has no git repository with a commit')
  const remote = await askText(context, ['config', '--get', `remote.${REMOTE}.url`])
  if (remote === '') throw cannot(`the repository in the workspace has no remote "${REMOTE}"`)
  const parent = await findParent(context, ref)
  const tree = await hashOf(context, `${parent}^{tree}`)
  const alternates = await askText(context, ['rev-parse', '--git-path', 'objects'])
  if (!SHA1.test(parent) || tree === null)
    throw cannot(`no commit of the repository in the workspace is on a branch of "${REMOTE}"`)
  using scratch = openScratch(context)
  const baseIndex = path.join(scratch.path, 'base-index')
  const plan = privateGitIn(context, scratch.path, alternates)
  await git({ ...plan, index: baseIndex }, ['read-tree', tree])
  asUser(() => copyIndex(baseIndex, plan.index))
  // Code 1: some files differ.
  await git(plan, ['update-index', '-q', '--refresh'], { allowed: [0, 1] })
  const base = {
    treeHash: tree,
    isCommit: true,
    submodules: submodules.map((each) => ({ ...each, state: '' })),
  }
  const diff = await compareWorkspace({ context, plan, base, baseIndex, scratch: scratch.path, ...files })
  return { remote, parent, branch: await findUpstream(context, ref), diff }
}

/** Empty when there is none. */
async function findParent(context: TreeContext, ref: string | undefined): Promise<string> {
  const format = '--format=%(objectname) %(refname:lstrip=3)'
  const refs = ['for-each-ref', '--sort=-committerdate', format, `--count=${MAX_BRANCHES}`]
  const lines = (await askText(context, [...refs, `refs/remotes/${REMOTE}`])).split('\n').filter(Boolean)
  const branches = lines.map((line) => {
    const [commit = '', name = ''] = line.split(' ')
    return { commit, name }
  })
  const others = branches.filter(({ name }) => !isAgentBranch(name, ref))
  return (await findMergeBase(context, others)) || findMergeBase(context, branches)
}

async function findMergeBase(
  context: TreeContext,
  branches: readonly { readonly commit: string }[],
): Promise<string> {
  const commits = new Set(branches.map(({ commit }) => commit))
  return commits.size === 0 ? '' : askText(context, ['merge-base', 'HEAD', ...commits])
}

function isAgentBranch(name: string, ref: string | undefined): boolean {
  return name.startsWith(AGENT_BRANCH) && name !== ref
}

/** The branch of the remote that the current branch follows; null: none, or one of an agent. */
async function findUpstream(context: TreeContext, ref: string | undefined): Promise<string | null> {
  const upstream = await askText(context, ['rev-parse', '--abbrev-ref', 'HEAD@{upstream}'])
  const name = upstream.startsWith(`${REMOTE}/`) ? upstream.slice(REMOTE.length + 1) : ''
  return name === '' || isAgentBranch(name, ref) ? null : name
}

async function askText(context: TreeContext, args: readonly string[]): Promise<string> {
  return (await askRepository(context, args))?.toString().trim() ?? ''
}

function cannot(problem: string): SandwireError {
  return new SandwireError('conflict', `Cannot publish the changes: ${problem}`)
}
