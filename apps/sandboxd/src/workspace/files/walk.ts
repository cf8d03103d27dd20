import { Descriptor, openAt } from '../beneath/system-calls.ts'
import { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } from '../beneath/constants.ts'
import { parsePath } from '../beneath/path.ts'
import { STATX_BYTES } from '../beneath/statx.ts'
import type { Found } from '../files.ts'
import { readEntry, readTarget } from './listing.ts'
import { bytesOfName, cName, type Ground, type Job, sortedNames } from './context.ts'

/** Folders within folders that anything goes into: each holds a descriptor open. */
export const MAX_DEPTH = 512
/** Files and folders told at a time. */
const BATCH = 256

export interface WalkBounds {
  readonly maxNodes: number
  readonly maxDepth: number
  readonly timeMs: number
}

/** Limits that left something out. */
export type WalkEnd = readonly ('nodes' | 'depth' | 'time')[]

/** Tells everything below a folder, each folder before what is in it, names in the order of their bytes. */
export function* walk(ground: Ground, path: string, bounds: WalkBounds): Job<WalkEnd, readonly Found[]> {
  const tour = new Tour(ground, parsePath(path).names, bounds)
  using folder = ground.root.openFolder(path, 'list')
  yield* tour.visit(folder.fd, { text: '', names: [], depth: 0 })
  yield tour.take()
  return [...tour.reached]
}

/** A folder on the way. */
interface Place {
  /** Its path from where the walk began, with a slash at the end; empty there. */
  readonly text: string
  readonly names: readonly Uint8Array[]
  readonly depth: number
}

class Tour {
  readonly reached = new Set<WalkEnd[number]>()
  readonly #ground: Ground
  readonly #above: readonly Uint8Array[]
  readonly #bounds: WalkBounds
  readonly #endMs: number
  readonly #stat = new Uint8Array(STATX_BYTES)
  #nodes = 0
  #batch: Found[] = []

  constructor(ground: Ground, above: readonly Uint8Array[], bounds: WalkBounds) {
    this.#ground = ground
    this.#above = above
    this.#bounds = bounds
    this.#endMs = ground.now() + bounds.timeMs
  }

  take(): readonly Found[] {
    const batch = this.#batch
    this.#batch = []
    return batch
  }

  *visit(folder: number, place: Place): Job<void, readonly Found[]> {
    const names = yield* sortedNames(folder, { doing: 'list', path: place.text })
    for (const name of names) {
      if (this.#isOver()) return
      const entry = readEntry(folder, name, this.#stat)
      if (entry === undefined) continue
      const inner = [...place.names, bytesOfName(name)]
      const path = place.text + entry.name
      const target = entry.kind === 'link' ? readTarget(this.#ground.root, [...this.#above, ...inner]) : {}
      this.#nodes += 1
      this.#batch.push({ ...entry, ...target, path })
      if (this.#batch.length >= BATCH) yield this.take()
      if (entry.kind !== 'folder') continue
      yield* this.#enter(folder, name, { text: `${path}/`, names: inner, depth: place.depth + 1 })
    }
  }

  *#enter(above: number, name: string, place: Place): Job<void, readonly Found[]> {
    if (place.depth >= Math.min(this.#bounds.maxDepth, MAX_DEPTH)) {
      this.reached.add('depth')
      return
    }
    const fd = openAt(above, cName(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK)
    // Gone, no folder any more, or not for this user: nothing below is told.
    if (fd < 0) return
    using folder = new Descriptor(fd)
    yield* this.visit(folder.fd, place)
  }

  #isOver(): boolean {
    if (this.#nodes >= this.#bounds.maxNodes) this.reached.add('nodes')
    else if (this.#ground.now() > this.#endMs) this.reached.add('time')
    else return false
    return true
  }
}
