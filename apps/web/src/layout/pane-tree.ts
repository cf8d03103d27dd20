/** A single view, or two subtrees beside or above each other. */
export type PaneTree =
  | { readonly kind: 'leaf'; readonly id: string }
  | {
      readonly kind: 'split'
      readonly id: string
      /** `row`: side by side. `column`: one above the other. */
      readonly direction: 'row' | 'column'
      /** Share of the first subtree, from 0 to 1. */
      readonly share: number
      readonly first: PaneTree
      readonly second: PaneTree
    }

const MIN_SHARE = 0.1

/** Maximum split depth, more than fits on any screen. */
export const MAX_DEPTH = 64

/** Minimum pane size in pixels, by split direction. */
const MIN_SIZE = { row: 160, column: 90 } as const

export function leaf(id: string): PaneTree {
  return { kind: 'leaf', id }
}

/** Ids of all views, in reading order. */
export function leavesOf(tree: PaneTree): readonly string[] {
  return tree.kind === 'leaf' ? [tree.id] : [...leavesOf(tree.first), ...leavesOf(tree.second)]
}

/** Number of splits around a view. */
export function depthOf(tree: PaneTree, id: string): number | undefined {
  if (tree.kind === 'leaf') return tree.id === id ? 0 : undefined
  const inside = depthOf(tree.first, id) ?? depthOf(tree.second, id)
  return inside === undefined ? undefined : inside + 1
}

/** True when both halves of a pane would be large enough. */
export function canHalve(
  { width, height }: { readonly width: number; readonly height: number },
  direction: 'row' | 'column',
): boolean {
  return (direction === 'row' ? width : height) >= 2 * MIN_SIZE[direction]
}

/** Minimum size of a subtree in a direction, in pixels. */
function leastOf(tree: PaneTree, direction: 'row' | 'column'): number {
  if (tree.kind === 'leaf') return MIN_SIZE[direction]
  const first = leastOf(tree.first, direction)
  const second = leastOf(tree.second, direction)
  return tree.direction === direction ? first + second : Math.max(first, second)
}

/** The share closest to the wanted one at which both sides are large enough. */
export function boundShare(
  { direction, first, second }: Extract<PaneTree, { kind: 'split' }>,
  wanted: number,
  size: number,
): number {
  const [least, other] = [leastOf(first, direction), leastOf(second, direction)]
  if (least + other >= size) return least / (least + other)
  return Math.min(1 - other / size, Math.max(least / size, wanted))
}

/** Splits a view and puts a new one after it. */
export function splitLeaf(
  tree: PaneTree,
  at: string,
  {
    id,
    direction,
    splitId,
  }: { readonly id: string; readonly direction: 'row' | 'column'; readonly splitId: string },
): PaneTree {
  if (tree.kind === 'split')
    return {
      ...tree,
      first: splitLeaf(tree.first, at, { id, direction, splitId }),
      second: splitLeaf(tree.second, at, { id, direction, splitId }),
    }
  if (tree.id !== at) return tree
  return { kind: 'split', id: splitId, direction, share: 0.5, first: tree, second: leaf(id) }
}

/** Removes a view, whose sibling takes its space; undefined when it was the last one. */
export function removeLeaf(tree: PaneTree, id: string): PaneTree | undefined {
  if (tree.kind === 'leaf') return tree.id === id ? undefined : tree
  const first = removeLeaf(tree.first, id)
  const second = removeLeaf(tree.second, id)
  if (first === undefined || second === undefined) return first ?? second
  return { ...tree, first, second }
}

/** Sets the share of a split. */
export function resizeSplit(tree: PaneTree, splitId: string, share: number): PaneTree {
  if (tree.kind === 'leaf') return tree
  if (tree.id === splitId)
    return {
      ...tree,
      share: Math.min(1 - MIN_SHARE, Math.max(MIN_SHARE, Number.isFinite(share) ? share : 0.5)),
    }
  return {
    ...tree,
    first: resizeSplit(tree.first, splitId, share),
    second: resizeSplit(tree.second, splitId, share),
  }
}

/** The next view in reading order, wrapping around. */
export function nextLeaf(tree: PaneTree, id: string, step: 1 | -1): string {
  const leaves = leavesOf(tree)
  const at = leaves.indexOf(id)
  return leaves[(at + step + leaves.length) % leaves.length] ?? id
}
