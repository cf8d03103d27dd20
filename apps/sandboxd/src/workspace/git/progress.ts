import { SandwireError } from '@sandwire/protocol'
import type { Repository } from './repository.ts'

/** What git is in the middle of. */
export type Progress = 'rebase' | 'am' | 'merge' | 'cherry-pick' | 'revert' | 'bisect'

/** What git leaves while it is at something; the first that is there counts, since a rebase picks and merges as well. */
const TRACES: readonly (readonly [string, Progress])[] = [
  ['rebase-merge', 'rebase'],
  ['rebase-apply/applying', 'am'],
  ['rebase-apply', 'rebase'],
  ['MERGE_HEAD', 'merge'],
  ['CHERRY_PICK_HEAD', 'cherry-pick'],
  ['REVERT_HEAD', 'revert'],
  ['BISECT_LOG', 'bisect'],
]

/** What the repository is in the middle of, or null. */
export async function readProgress({ files, gitPath }: Repository): Promise<Progress | null> {
  for (const [name, progress] of TRACES) {
    try {
      await files.stat(`${gitPath}/${name}`)
      return progress
    } catch (caught) {
      if (SandwireError.from(caught).code === 'internal') throw caught
      // Not there, or not to be seen: git is not at it.
    }
  }
  return null
}
