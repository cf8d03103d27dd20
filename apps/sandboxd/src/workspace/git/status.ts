import { SandwireError } from '@sandwire/protocol'
import { callGit } from './call.ts'
import { isUnfinished } from './names.ts'
import { expectSuccess, readTokens } from './output.ts'
import type { Repository } from './repository.ts'
import { type StatusEntry, type StatusHead, StatusParser } from './status-parser.ts'

/** How much is answered, and how long it may take. */
export interface StatusLimits {
  readonly maxEntries: number
  readonly maxBytes: number
  /** For everything. */
  readonly timeMs: number
  /** For tracked files alone, after that. */
  readonly trackedMs: number
}

export const STATUS_LIMITS: StatusLimits = {
  maxEntries: 10_000,
  maxBytes: 4 * 1024 * 1024,
  timeMs: 15_000,
  trackedMs: 10_000,
}

export interface Status {
  readonly head: StatusHead
  readonly entries: readonly StatusEntry[]
  /** There are more entries. */
  readonly truncated: boolean
  /** Untracked files were looked for; it is left out where it takes too long. */
  readonly hasUntracked: boolean
}

/** Submodules count by their commit: to look into one is to call git by another configuration. */
const OPTIONS = [
  '--porcelain=v2',
  '--branch',
  '--find-renames',
  '--ignore-submodules=dirty',
  '--null',
] as const

/** What git says of the work tree. */
export async function readStatus(repository: Repository, limits = STATUS_LIMITS): Promise<Status> {
  try {
    return await read(repository, { untracked: 'normal', timeMs: limits.timeMs, limits })
  } catch (caught) {
    if (SandwireError.from(caught).code !== 'timed_out') throw caught
    return read(repository, { untracked: 'no', timeMs: limits.trackedMs, limits })
  }
}

async function read(
  repository: Repository,
  {
    untracked,
    timeMs,
    limits,
  }: { untracked: 'normal' | 'no'; timeMs: number; limits: Pick<StatusLimits, 'maxEntries' | 'maxBytes'> },
): Promise<Status> {
  const args = ['status', ...OPTIONS, `--untracked-files=${untracked}`] as const
  const tool = await callGit(repository, { args, timeMs })
  const parser = new StatusParser()
  const entries: StatusEntry[] = []
  const hasUntracked = untracked === 'normal'
  let sizeBytes = 0
  for await (const token of readTokens(tool)) {
    sizeBytes += token.length
    const entry = parser.push(token)
    if (entry === undefined || (entry.kind === 'untracked' && isUnfinished(entry.path))) continue
    if (entries.length >= limits.maxEntries || sizeBytes > limits.maxBytes)
      return { head: parser.head, entries, truncated: true, hasUntracked }
    entries.push(entry)
  }
  await expectSuccess(tool, 'Cannot read the status')
  return { head: parser.head, entries, truncated: false, hasUntracked }
}
