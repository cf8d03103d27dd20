import type { SearchMatch } from '../api/search.ts'

/** The matches in one file. */
export interface FileMatches {
  readonly path: string
  readonly matches: readonly SearchMatch[]
}

/** Adds a match to the group of its file. */
export function addMatch(groups: readonly FileMatches[], match: SearchMatch): readonly FileMatches[] {
  const last = groups.at(-1)
  // Ripgrep reports the matches of a file consecutively.
  if (last?.path === match.path)
    return [...groups.slice(0, -1), { ...last, matches: [...last.matches, match] }]
  return [...groups, { path: match.path, matches: [match] }]
}

/** Characters kept before the first match, few enough to show it in the narrowest panel. */
const LEAD_CHARS = 12
/** Maximum length of a displayed line. */
const MAX_LINE_CHARS = 300

/** The displayed part of a line: without indentation, starting shortly before the first match. */
export function aroundMatch({ text, ranges }: Pick<SearchMatch, 'text' | 'ranges'>): {
  readonly text: string
  readonly ranges: SearchMatch['ranges']
} {
  const first = ranges[0]?.[0] ?? 0
  const indent = Math.min(first, text.length - text.trimStart().length)
  const isFar = first - indent > LEAD_CHARS
  const wanted = isFar ? first - LEAD_CHARS : indent
  // Do not split a surrogate pair.
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

/** Splits a line into matching and other parts. */
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
