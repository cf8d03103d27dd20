import { SandwireError } from '@sandwire/protocol'
import { callGit, type GitCall, readBytes, readLine } from './git-command.ts'
import type { Repository } from './repository.ts'
import type { RunningTool } from '../tool.ts'

const MAX_OUTPUT_BYTES = 64 * 1024
/** A program other than git that writes the index or a branch holds the lock for less than this. */
const STALE_MS = 60_000
const QUERY_MS = 10_000

/** What tells a lock that is held from one that was left behind. */
export interface GitLocks {
  /** Whether a process that can use the workspace may have a name that begins like this. */
  readonly hasProcess: (prefix: string) => Promise<boolean>
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number
}

/**
 * Runs a command that changes the index or the branch. When a killed git has left locks behind, removes them and runs the command
 * again.
 */
export async function runChange(
  repository: Repository,
  call: GitCall,
): Promise<{ readonly tool: RunningTool; readonly status: Awaited<RunningTool['exited']> }> {
  const first = await run(repository, call)
  if (first.status.code === 0) return first
  const wasKilled = first.status.signal !== null
  const isRemoved = await removeLocks(repository, wasKilled)
  return isRemoved && !wasKilled ? run(repository, call) : first
}

async function run(repository: Repository, call: GitCall): ReturnType<typeof runChange> {
  const tool = await callGit(repository, call)
  await readBytes(tool, MAX_OUTPUT_BYTES)
  return { tool, status: await tool.exited }
}

/** What a commit locks: the index, `HEAD` and its branch. */
async function listLocks(repository: Repository): Promise<readonly string[]> {
  const tool = await callGit(repository, { args: ['symbolic-ref', '--quiet', 'HEAD'], timeMs: QUERY_MS })
  const branch = await readLine(tool)
  return ['index', 'HEAD', ...(branch === '' ? [] : [branch])].map(
    (name) => `${repository.gitPath}/${name}.lock`,
  )
}

/** Removes the locks if no git runs and they are old, or if a git of ours was just killed. Returns whether it removed any. */
async function removeLocks(repository: Repository, wasKilled: boolean): Promise<boolean> {
  let isRemoved = false
  for (const path of await listLocks(repository))
    if (await removeLock(repository, path, wasKilled)) isRemoved = true
  return isRemoved
}

async function removeLock(
  { files, gitLocks }: Repository,
  path: string,
  wasKilled: boolean,
): Promise<boolean> {
  try {
    const { mtimeNs } = await files.stat(path)
    const ageMs = gitLocks.wallClock() - Number(BigInt(mtimeNs) / 1_000_000n)
    if ((!wasKilled && ageMs < STALE_MS) || (await gitLocks.hasProcess('git'))) return false
    await files.remove(path, { recursive: false })
    return true
  } catch (caught) {
    if (SandwireError.from(caught).code === 'internal') throw caught
    // There is no lock, or it cannot be removed; git has reported it.
    return false
  }
}
