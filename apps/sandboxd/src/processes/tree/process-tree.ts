import type { MarkedEntry, ProcessEntry } from './process-table.ts'
import { isTag, tagOf } from './process-tag.ts'

/** Identifies the processes of one session. */
export interface ProcessTree {
  readonly leaderPid: number
  readonly leaderStartTicks: string
  readonly marker: string
}

export interface ProcessTreeView {
  readonly members: readonly ProcessEntry[]
  /** False when a process could not be identified; a later scan can. */
  readonly isCertain: boolean
}

/**
 * Selects every living process of each tree: by group, session, tag or marker, and descendants of these. The cost is that of
 * one pass over the table and over the members, whatever the number of trees.
 */
export function selectProcessTrees(
  trees: readonly ProcessTree[],
  table: readonly MarkedEntry[],
): ReadonlyMap<ProcessTree, ProcessTreeView> {
  const index = new TreeIndex(trees, table)
  const members = new Map<ProcessTree, Set<MarkedEntry>>(trees.map((tree) => [tree, new Set()]))
  const children = new Map<number, MarkedEntry[]>()
  const unidentified: MarkedEntry[] = []
  for (const entry of table) {
    if (entry.pid === process.pid) continue
    append(children, entry.parentPid, entry)
    for (const tree of index.treesOf(entry)) members.get(tree)?.add(entry)
    // A process with the tag of any session belongs to that one.
    if (entry.markers === undefined && !isTag(entry.tag)) unidentified.push(entry)
  }
  const views = new Map<ProcessTree, ProcessTreeView>()
  for (const [tree, found] of members) {
    // Entries that are added during the iteration are visited too.
    for (const entry of found) for (const child of children.get(entry.pid) ?? []) found.add(child)
    views.set(tree, {
      members: [...found].filter((entry) => !entry.isDead),
      isCertain: unidentified.every((entry) => found.has(entry)),
    })
  }
  return views
}

/** Finds the trees that a process belongs to by itself. */
class TreeIndex {
  readonly #byLeader = new Map<number, ProcessTree[]>()
  readonly #byTag = new Map<string, ProcessTree[]>()
  readonly #byMarker = new Map<string, ProcessTree[]>()

  constructor(trees: readonly ProcessTree[], table: readonly ProcessEntry[]) {
    const startTicks = new Map(table.map((entry) => [entry.pid, entry.startTicks]))
    for (const tree of trees) {
      append(this.#byTag, tagOf(tree.marker).toString(), tree)
      append(this.#byMarker, tree.marker, tree)
      // The kernel reuses the leader's pid only when no process of its group or session is left.
      const ticks = startTicks.get(tree.leaderPid)
      if (ticks === undefined || ticks === tree.leaderStartTicks) append(this.#byLeader, tree.leaderPid, tree)
    }
  }

  *treesOf({ pid, groupId, sessionId, tag, markers }: MarkedEntry): Iterable<ProcessTree> {
    yield* this.#byLeader.get(pid) ?? []
    if (groupId !== pid) yield* this.#byLeader.get(groupId) ?? []
    if (sessionId !== pid && sessionId !== groupId) yield* this.#byLeader.get(sessionId) ?? []
    if (tag !== undefined) yield* this.#byTag.get(tag) ?? []
    for (const marker of markers ?? []) yield* this.#byMarker.get(marker) ?? []
  }
}

function append<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [value])
  else list.push(value)
}
