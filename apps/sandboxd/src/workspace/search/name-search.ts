import type { FileKind, Files, Found } from '../files.ts'
import { isHiddenName } from '../files/context.ts'

export interface FindLimits {
  readonly maxResults: number
  readonly maxNodes: number
  /** Maximum depth of a result. */
  readonly maxDepth: number
  readonly timeMs: number
}

/** An entry whose name matches. */
export interface FoundName {
  readonly name: string
  /** Relative to the searched folder. */
  readonly path: string
  readonly kind: FileKind
  /** A folder, or a link to one. */
  readonly isFolder: boolean
}

export interface FindResult {
  readonly found: readonly FoundName[]
  /** There may be more results. */
  readonly isTruncated: boolean
}

interface FindDependencies {
  readonly files: Pick<Files, 'walk'>
  readonly signal: AbortSignal
}

/** Finds files and folders by name, in walk order. */
export async function findNames(
  folder: string,
  isMatch: NameTest,
  { maxResults, ...limits }: FindLimits,
  { files, signal }: FindDependencies,
): Promise<FindResult> {
  const found: FoundName[] = []
  let isTruncated = false
  const reached = (): void => {
    isTruncated = true
  }
  for await (const batch of files.walk(folder, { ...limits, reached }, signal)) {
    for (const entry of batch) {
      if (!isMatch(entry.name) || isHiddenName(entry.name)) continue
      if (found.length >= maxResults) return { found, isTruncated: true }
      found.push(toName(entry))
    }
  }
  return { found, isTruncated }
}

function toName({ name, path, kind, target }: Found): FoundName {
  return { name, path, kind, isFolder: kind === 'folder' || target === 'folder' }
}

export type NameTest = (name: string) => boolean

type Token =
  | { readonly kind: 'any' }
  | { readonly kind: 'one' }
  | {
      readonly kind: 'set'
      readonly ranges: readonly (readonly [string, string])[]
      readonly isNegated: boolean
    }
  | { readonly kind: 'character'; readonly character: string }

/**
 * A shell pattern as in Python's `fnmatch`: `*`, `?`, `[a-z]`, `[!a-z]`. It is matched against the whole name, ignoring case, in
 * time linear in both lengths.
 */
export function namePattern(pattern: string): NameTest {
  const tokens = tokenize(Array.from(pattern.toLowerCase()))
  return (name) => matches(tokens, Array.from(name.toLowerCase()))
}

/** Matches names that contain the text, or that match it when it is a pattern. */
export function nameSearch(text: string): NameTest {
  if (/[*?[]/.test(text)) return namePattern(text)
  const part = text.toLowerCase()
  return (name) => name.toLowerCase().includes(part)
}

function tokenize(characters: readonly string[]): Token[] {
  const tokens: Token[] = []
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? ''
    if (character === '*') tokens.push({ kind: 'any' })
    else if (character === '?') tokens.push({ kind: 'one' })
    else {
      const end = character === '[' ? setEnd(characters, at) : -1
      tokens.push(end < 0 ? { kind: 'character', character } : readSet(characters.slice(at + 1, end)))
      if (end >= 0) at = end
    }
  }
  return tokens
}

/** End of the set that starts at a position. A bracket right after its start belongs to it. */
function setEnd(characters: readonly string[], start: number): number {
  let at = start + 1
  if (characters[at] === '!') at += 1
  if (characters[at] === ']') at += 1
  return characters.indexOf(']', at)
}

function readSet(inside: readonly string[]): Token {
  const isNegated = inside[0] === '!'
  const rest = isNegated ? inside.slice(1) : inside
  const ranges: (readonly [string, string])[] = []
  for (let at = 0; at < rest.length; at += 1) {
    const first = rest[at] ?? ''
    const last = rest[at + 1] === '-' ? rest[at + 2] : undefined
    ranges.push([first, last ?? first])
    if (last !== undefined) at += 2
  }
  return { kind: 'set', ranges, isNegated }
}

/** Backtracks to the last `*` only, which suffices. */
function matches(tokens: readonly Token[], name: readonly string[]): boolean {
  let token = 0
  let at = 0
  let star = -1
  let starAt = 0
  while (at < name.length) {
    const now = tokens[token]
    if (now?.kind === 'any') {
      star = token
      starAt = at
      token += 1
    } else if (now !== undefined && fits(now, name[at] ?? '')) {
      token += 1
      at += 1
    } else if (star >= 0) {
      token = star + 1
      starAt += 1
      at = starAt
    } else return false
  }
  return tokens.slice(token).every(({ kind }) => kind === 'any')
}

function fits(token: Token, character: string): boolean {
  switch (token.kind) {
    case 'any':
    case 'one':
      return true
    case 'character':
      return token.character === character
    case 'set':
      return token.ranges.some(([first, last]) => isBetween(character, first, last)) !== token.isNegated
  }
}

function isBetween(character: string, first: string, last: string): boolean {
  const code = character.codePointAt(0) ?? 0
  return code >= (first.codePointAt(0) ?? 0) && code <= (last.codePointAt(0) ?? 0)
}
