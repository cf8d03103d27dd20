import { SandwireError } from '@sandwire/protocol'
import { callGit, type GitCall, readBytes } from './git-command.ts'
import type { Repository } from './repository.ts'
import type { RunningTool } from '../tool.ts'

const MAX_OUTPUT_BYTES = 64 * 1024
/** A program other than git that writes the index holds the lock for less than this. */
const STALE_MS = 60_000

/** What tells a lock that is held from one that was left behind. */
export interface GitLocks {
  /** Whether a process that can use the workspace may have a name that begins like this. */
  readonly hasProcess: (prefix: string) => Promise<boolean>
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number
}

/** Runs a command that changes the index. When a killed git has left its lock behind, removes that and runs the command again. */
export async function runChange(
  repository: Repository,
  call: GitCall,
): Promise<{ readonly tool: RunningTool; readonly status: Awaited<RunningTool['exited']> }> {
  const first = await run(repository, call)
  if (first.status.code === 0) return first
  const wasKilled = first.status.signal !== null
  const isRemoved = await removeLock(repository, wasKilled)
  return isRemoved && !wasKilled ? run(repository, call) : first
}

async function run(repository: Repository, call: GitCall): ReturnType<typeof runChange> {
  const tool = await callGit(repository, call)
  await readBytes(tool, MAX_OUTPUT_BYTES)
  return { tool, status: await tool.exited }
}

/**
 * Removes the lock of the index if no git runs and it is old, or if a git of ours was just killed. Returns whether it did.
 */
async function removeLock({ files, gitPath, gitLocks }: Repository, wasKilled: boolean): Promise<boolean> {
  const path = `${gitPath}/index.lock`
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
