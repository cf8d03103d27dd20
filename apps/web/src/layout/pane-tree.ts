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

export function leaf(id: string): PaneTree {
  return { kind: 'leaf', id }
}

/** Ids of all views, in reading order. */
export function leavesOf(tree: PaneTree): readonly string[] {
  return tree.kind === 'leaf' ? [tree.id] : [...leavesOf(tree.first), ...leavesOf(tree.second)]
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

/** Takes a view out; its neighbour gets the room. Undefined when it was the last. */
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
