import type { SearchMatch } from '../api/search.ts'

/** What was found in one file. */
export interface FileMatches {
  readonly path: string
  readonly matches: readonly SearchMatch[]
}

/** Puts a match with those of its file, in the order in which they came. */
export function addMatch(groups: readonly FileMatches[], match: SearchMatch): readonly FileMatches[] {
  const last = groups.at(-1)
  // Ripgrep tells a file's matches one after the other.
  if (last?.path === match.path)
    return [...groups.slice(0, -1), { ...last, matches: [...last.matches, match] }]
  return [...groups, { path: match.path, matches: [match] }]
}

/** A line in parts: what was found in it, and what is between. */
export function partsOf({ text, ranges }: Pick<SearchMatch, 'text' | 'ranges'>): readonly {
  readonly text: string
  readonly isMatch: boolean
}[] {
  const parts: { text: string; isMatch: boolean }[] = []
  let at = 0
  for (const [from, to] of ranges) {
    if (from < at || to < from) continue
    parts.push({ text: text.slice(at, from), isMatch: false }, { text: text.slice(from, to), isMatch: true })
    at = to
  }
  parts.push({ text: text.slice(at), isMatch: false })
  return parts.filter((part) => part.text !== '')
}
