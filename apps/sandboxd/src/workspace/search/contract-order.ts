import type { FoundName } from './find-names.ts'

/**
 * The order of the contract: each folder's folders first, then by lower-cased name, and what is in a folder right behind it.
 * Whoever shows a tree so finds results where they are in it.
 */
export function byContractOrder(left: FoundName, right: FoundName): number {
  const ours = left.path.split('/')
  const theirs = right.path.split('/')
  const at = ours.findIndex((name, index) => name !== theirs[index])
  if (at < 0) return ours.length - theirs.length
  if (at >= theirs.length) return 1
  const isSameKind = isFolderAt(left, ours, at) === isFolderAt(right, theirs, at)
  if (!isSameKind) return isFolderAt(left, ours, at) ? -1 : 1
  const [one = '', other = ''] = [ours[at], theirs[at]]
  return compare(one.toLowerCase(), other.toLowerCase()) || compare(one, other)
}

function isFolderAt(found: FoundName, names: readonly string[], at: number): boolean {
  return at < names.length - 1 || found.isFolder
}

/** By code points, as Python orders text. */
function compare(left: string, right: string): number {
  const ours = Array.from(left)
  const theirs = Array.from(right)
  const at = ours.findIndex((character, index) => character !== theirs[index])
  if (at < 0) return ours.length - theirs.length
  return (ours[at]?.codePointAt(0) ?? 0) - (theirs[at]?.codePointAt(0) ?? -1)
}
