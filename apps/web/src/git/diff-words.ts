import type { GitDiff } from '../api/git.ts'
import { gitTexts } from '../texts/git.ts'

/** Longest two texts together that are drawn beside each other, in characters. */
const MAX_TEXTS_CHARS = 8 * 1024 * 1024
/** Longest text of git's own that is drawn. */
const MAX_WORDS_CHARS = 256 * 1024

/** Git's own words, and what is to be said above them. */
export interface DiffWords {
  readonly text: string
  readonly note?: string
}

export function areDrawable(before: string, after: string): boolean {
  return before.length + after.length <= MAX_TEXTS_CHARS
}

/** As much of a difference as can be drawn; where that is not all of it, with how much there is and what shows it. */
export function wordsOf({ diff, files, truncated }: GitDiff, command: string): DiffWords {
  if (truncated === false && diff.length <= MAX_WORDS_CHARS) return { text: diff }
  const end = diff.lastIndexOf('\n', MAX_WORDS_CHARS)
  const sum = (key: 'added' | 'removed'): string =>
    gitTexts.diff.lines(files.reduce((total, file) => total + file[key], 0))
  return {
    text: diff.slice(0, end + 1),
    note: gitTexts.diff.tooLarge(sum('added'), sum('removed'), command),
  }
}
