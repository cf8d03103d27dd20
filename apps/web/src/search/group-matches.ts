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

/** What is kept of a line before its first match: enough for the match to be in sight where the list is narrowest. */
const LEAD_CHARS = 12
/** What is drawn of a line at most. */
const MAX_LINE_CHARS = 300

/** The part of a line that is shown: without its indentation, and not far before what was found in it. */
export function aroundMatch({ text, ranges }: Pick<SearchMatch, 'text' | 'ranges'>): {
  readonly text: string
  readonly ranges: SearchMatch['ranges']
} {
  const first = ranges[0]?.[0] ?? 0
  const indent = Math.min(first, text.length - text.trimStart().length)
  const isFar = first - indent > LEAD_CHARS
  const wanted = isFar ? first - LEAD_CHARS : indent
  // A pair of units is one character.
  const from = /[\u{dc00}-\u{dfff}]/u.test(text.charAt(wanted)) ? wanted + 1 : wanted
  const shift = from - (isFar ? 1 : 0)
  const end = from + MAX_LINE_CHARS
  return {
    text: `${isFar ? '…' : ''}${text.slice(from, end)}${end < text.length ? '…' : ''}`,
    ranges: ranges
      .filter(([start]) => start < end)
      .map(([start, stop]) => [start - shift, Math.min(stop, end) - shift] as const),
  }
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
