import { Descriptor, openAt } from '../beneath/system-calls.ts'
import { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } from '../beneath/constants.ts'
import { parsePath } from '../beneath/path.ts'
import { STATX_BYTES } from '../beneath/statx.ts'
import type { Found } from '../files.ts'
import { readEntry, readTarget } from './listing.ts'
import { bytesOfName, cName, type FileContext, type Job, sortedNames } from './context.ts'

/** Maximum folder depth of any operation: each level holds a descriptor open. */
export const MAX_DEPTH = 512
/** Entries reported at a time. */
const BATCH = 256

export interface WalkBounds {
  readonly maxNodes: number
  readonly maxDepth: number
  readonly timeMs: number
}

/** Limits that cut the walk short. */
export type WalkEnd = readonly ('nodes' | 'depth' | 'time')[]

/** Yields everything below a folder, each folder before its contents, sorted by the bytes of the names. */
export function* walk(
  context: FileContext,
  path: string,
  bounds: WalkBounds,
): Job<WalkEnd, readonly Found[]> {
  const treeWalk = new TreeWalk(context, parsePath(path).names, bounds)
  using folder = context.root.openFolder(path, 'list')
  yield* treeWalk.visit(folder.fd, { text: '', names: [], depth: 0 })
  yield treeWalk.take()
  return [...treeWalk.reached]
}

interface VisitedFolder {
  /** Relative path with a trailing slash; empty for the start folder. */
  readonly text: string
  readonly names: readonly Uint8Array[]
  readonly depth: number
}

class TreeWalk {
  readonly reached = new Set<WalkEnd[number]>()
  readonly #context: FileContext
  readonly #above: readonly Uint8Array[]
  readonly #bounds: WalkBounds
  readonly #endMs: number
  readonly #stat = new Uint8Array(STATX_BYTES)
  #nodes = 0
  #batch: Found[] = []

  constructor(context: FileContext, above: readonly Uint8Array[], bounds: WalkBounds) {
    this.#context = context
    this.#above = above
    this.#bounds = bounds
    this.#endMs = context.now() + bounds.timeMs
  }

  take(): readonly Found[] {
    const batch = this.#batch
    this.#batch = []
    return batch
  }

  *visit(folder: number, visited: VisitedFolder): Job<void, readonly Found[]> {
    const names = yield* sortedNames(folder, { action: 'list', path: visited.text })
    for (const name of names) {
      if (this.#isOver()) return
      const entry = readEntry(folder, name, this.#stat)
      if (entry === undefined) continue
      const inner = [...visited.names, bytesOfName(name)]
      const path = visited.text + entry.name
      const target = entry.kind === 'link' ? readTarget(this.#context.root, [...this.#above, ...inner]) : {}
      this.#nodes += 1
      this.#batch.push({ ...entry, ...target, path })
      if (this.#batch.length >= BATCH) yield this.take()
      if (entry.kind !== 'folder') continue
      yield* this.#enter(folder, name, { text: `${path}/`, names: inner, depth: visited.depth + 1 })
    }
  }

  *#enter(above: number, name: string, visited: VisitedFolder): Job<void, readonly Found[]> {
    if (visited.depth >= Math.min(this.#bounds.maxDepth, MAX_DEPTH)) {
      this.reached.add('depth')
      return
    }
    const fd = openAt(above, cName(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK)
    // Gone, no longer a folder, or not readable: it is skipped.
    if (fd < 0) return
    using folder = new Descriptor(fd)
    yield* this.visit(folder.fd, visited)
  }

  #isOver(): boolean {
    if (this.#nodes >= this.#bounds.maxNodes) this.reached.add('nodes')
    else if (this.#context.now() > this.#endMs) this.reached.add('time')
    else return false
    return true
  }
}
