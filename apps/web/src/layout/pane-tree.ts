/** A place for one view, or two places beside or above each other. */
export type PaneTree =
  | { readonly kind: 'leaf'; readonly id: string }
  | {
      readonly kind: 'split'
      readonly id: string
      /** `row`: side by side. `column`: one above the other. */
      readonly direction: 'row' | 'column'
      /** Share of the first, from 0 to 1. */
      readonly share: number
      readonly first: PaneTree
      readonly second: PaneTree
    }

const MIN_SHARE = 0.1

/** Splits around one view: more than fit on any screen. */
export const MAX_DEPTH = 64

/** Pixels that a pane needs to show anything, by the direction in which it is divided. */
const MIN_SIZE = { row: 160, column: 90 } as const

export function leaf(id: string): PaneTree {
  return { kind: 'leaf', id }
}

/** Ids of all views, in reading order. */
export function leavesOf(tree: PaneTree): readonly string[] {
  return tree.kind === 'leaf' ? [tree.id] : [...leavesOf(tree.first), ...leavesOf(tree.second)]
}

/** How many splits a view lies in. */
export function depthOf(tree: PaneTree, id: string): number | undefined {
  if (tree.kind === 'leaf') return tree.id === id ? 0 : undefined
  const inside = depthOf(tree.first, id) ?? depthOf(tree.second, id)
  return inside === undefined ? undefined : inside + 1
}

/** Whether both halves of a pane of that many pixels would be large enough. */
export function canHalve(
  { width, height }: { readonly width: number; readonly height: number },
  direction: 'row' | 'column',
): boolean {
  return (direction === 'row' ? width : height) >= 2 * MIN_SIZE[direction]
}

/** Pixels that all of a tree needs at least in a direction. */
function leastOf(tree: PaneTree, direction: 'row' | 'column'): number {
  if (tree.kind === 'leaf') return MIN_SIZE[direction]
  const first = leastOf(tree.first, direction)
  const second = leastOf(tree.second, direction)
  return tree.direction === direction ? first + second : Math.max(first, second)
}

/** The share next to a wished one with which both sides of a split of that many pixels are large enough. */
export function boundShare(
  { direction, first, second }: Extract<PaneTree, { kind: 'split' }>,
  wished: number,
  size: number,
): number {
  const [least, other] = [leastOf(first, direction), leastOf(second, direction)]
  if (least + other >= size) return least / (least + other)
  return Math.min(1 - other / size, Math.max(least / size, wished))
}

/** Puts a new view behind another one. */
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

/** Takes a view out; its neighbor gets the room. Undefined when it was the last. */
export function removeLeaf(tree: PaneTree, id: string): PaneTree | undefined {
  if (tree.kind === 'leaf') return tree.id === id ? undefined : tree
  const first = removeLeaf(tree.first, id)
  const second = removeLeaf(tree.second, id)
  if (first === undefined || second === undefined) return first ?? second
  return { ...tree, first, second }
}

/** Moves the border of a split. */
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

/** The next view in reading order, around the end. */
export function nextLeaf(tree: PaneTree, id: string, step: 1 | -1): string {
  const leaves = leavesOf(tree)
  const at = leaves.indexOf(id)
  return leaves[(at + step + leaves.length) % leaves.length] ?? id
}
