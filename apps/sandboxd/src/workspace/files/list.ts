import { pathToBytes } from '@sandwire/protocol'
import { parsePath } from '../beneath/path.ts'
import { STATX_BYTES } from '../beneath/statx.ts'
import type { Entry, Listing } from '../files.ts'
import { readEntry, readTarget } from './entry.ts'
import type { Ground, Job } from './job.ts'
import { byteName, bytesOfName, eachName } from './names.ts'
import { Smallest } from './smallest.ts'

export interface ListLimits {
  readonly maxEntries: number
  readonly timeMs: number
  /** Only names behind this one. */
  readonly after?: string
}

/** How many entries are looked at between two pauses. */
const BATCH = 64

/** The names in a folder in the order of their bytes, with what is known of each. */
export function* list(ground: Ground, path: string, limits: ListLimits): Job<Listing> {
  const { root, now } = ground
  using folder = root.openFolder(path, 'list')
  const endMs = now() + limits.timeMs
  const after = byteName(pathToBytes(limits.after ?? '') ?? new Uint8Array(0))
  const smallest = new Smallest(limits.maxEntries)
  let isLate = false
  const visit = (name: string): boolean => {
    if (name > after) smallest.add(name)
    isLate = now() > endMs
    return !isLate
  }
  yield* eachName(folder.fd, visit, { doing: 'list', path })
  const { names, hasMore } = smallest.take()
  const entries: Entry[] = []
  const stat = new Uint8Array(STATX_BYTES)
  const { names: above } = parsePath(path)
  for (const [index, name] of names.entries()) {
    if (index % BATCH === 0) yield undefined
    isLate ||= now() > endMs
    // One at least, so that whoever asks for what comes after gets on.
    if (isLate && entries.length > 0) return { entries, truncated: true }
    const entry = readEntry(folder.fd, name, stat)
    if (entry === undefined) continue
    entries.push(
      entry.kind === 'link' ? { ...entry, ...readTarget(root, [...above, bytesOfName(name)]) } : entry,
    )
  }
  return { entries, truncated: hasMore || isLate }
}
