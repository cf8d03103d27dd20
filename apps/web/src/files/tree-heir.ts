import { parentOf, ROOT } from './paths.ts'
import type { TreeLine } from './tree-lines.ts'

function itemPaths(lines: readonly TreeLine[]): readonly string[] {
  return lines.flatMap(({ kind, path }) => (kind === 'item' ? [path] : []))
}

/**
 * The file or folder that takes the place of one that is gone: the next of the same folder, or else the one before, or else the
 * folder. Undefined when there is none.
 */
export function heirOf(
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
    const heirs = [...siblings.slice(at), ...siblings.slice(0, at).toReversed(), parentOf(gone)]
    const found = heirs.find((each) => isThere.has(each))
    if (found !== undefined) return found
  }
  return undefined
}
