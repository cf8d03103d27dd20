import { parentOf, ROOT } from './paths.ts'
import type { TreeLine } from './tree-lines.ts'

/** Letters typed within this time belong together. */
const TYPING_MS = 700

/** Type-ahead state. */
export interface Typed {
  readonly text: string
  readonly atMs: number
}

/** The nearest entry at or after a line, in a direction. */
function itemFrom(lines: readonly TreeLine[], start: number, step: 1 | -1): number | undefined {
  for (let at = start; at >= 0 && at < lines.length; at += step) if (lines[at]?.kind === 'item') return at
  return undefined
}

/** The line that a navigation key moves to, if any. */
export function findLineByKey(
  lines: readonly TreeLine[],
  { at, key, pageRows }: { readonly at: number; readonly key: string; readonly pageRows: number },
): number | undefined {
  const line = lines[at]
  switch (key) {
    case 'ArrowDown':
      return itemFrom(lines, at + 1, 1)
    case 'ArrowUp':
      return itemFrom(lines, at - 1, -1)
    case 'Home':
      return itemFrom(lines, 0, 1)
    case 'End':
      return itemFrom(lines, lines.length - 1, -1)
    case 'PageDown': {
      const far = Math.min(at + pageRows, lines.length - 1)
      return itemFrom(lines, far, 1) ?? itemFrom(lines, far, -1)
    }
    case 'PageUp': {
      const far = Math.max(at - pageRows, 0)
      return itemFrom(lines, far, -1) ?? itemFrom(lines, far, 1)
    }
    case 'ArrowRight': {
      const next = lines[at + 1]
      const isInside = next?.kind === 'item' && line?.kind === 'item' && next.depth > line.depth
      return isInside ? at + 1 : undefined
    }
    case 'ArrowLeft': {
      const parent = parentOf(line?.path ?? '')
      const found = lines.findIndex(({ kind, path }) => kind === 'item' && path === parent)
      return found === -1 ? undefined : found
    }
    default:
      return undefined
  }
}

/** Appends a letter, or starts over after a pause. */
export function appendTyped(before: Typed | undefined, key: string, nowMs: number): Typed {
  const isSame = before !== undefined && nowMs - before.atMs < TYPING_MS
  return { text: isSame ? before.text + key : key, atMs: nowMs }
}

function nextNamed(lines: readonly TreeLine[], start: number, text: string): number | undefined {
  for (let step = 0; step < lines.length; step += 1) {
    const at = (start + step) % lines.length
    const line = lines[at]
    if (line?.kind === 'item' && line.entry.name.toLowerCase().startsWith(text)) return at
  }
  return undefined
}

/**
 * The next line whose name starts with the typed text, wrapping around. The current line still matches while the user
 * types on; a single or repeated letter moves to the next match.
 */
export function findLineByText(lines: readonly TreeLine[], at: number, typed: string): number | undefined {
  const text = typed.toLowerCase()
  const [first = '', ...others] = text
  const named = others.length > 0 ? nextNamed(lines, at, text) : undefined
  const isRepeated = others.every((letter) => letter === first)
  return named ?? (isRepeated ? nextNamed(lines, at + 1, first) : undefined)
}

function itemPaths(lines: readonly TreeLine[]): readonly string[] {
  return lines.flatMap(({ kind, path }) => (kind === 'item' ? [path] : []))
}

/** The entry that gets the focus when one is removed: the next in its folder, else the previous, else the folder. */
export function nextSelection(
  before: readonly TreeLine[],
  now: readonly TreeLine[],
  path: string,
): string | undefined {
  const paths = itemPaths(before)
  if (!paths.includes(path)) return undefined
  const isThere = new Set(itemPaths(now))
  for (let gone = path; gone !== ROOT; gone = parentOf(gone)) {
    const siblings = paths.filter((each) => parentOf(each) === parentOf(gone))
    const at = siblings.indexOf(gone)
    const candidates = [...siblings.slice(at), ...siblings.slice(0, at).toReversed(), parentOf(gone)]
    const found = candidates.find((each) => isThere.has(each))
    if (found !== undefined) return found
  }
  return undefined
}
