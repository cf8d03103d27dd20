import type { FileKind, Files, Found } from '../files.ts'
import type { NameTest } from './name-pattern.ts'

export interface FindLimits {
  readonly maxResults: number
  readonly maxNodes: number
  /** Names on the way to what is found, at most. */
  readonly maxDepth: number
  readonly timeMs: number
}

/** Something whose name was looked for. */
export interface FoundName {
  readonly name: string
  /** From the folder that was searched. */
  readonly path: string
  readonly kind: FileKind
  /** A folder, or a link to one. */
  readonly isFolder: boolean
}

export interface FindResult {
  readonly found: readonly FoundName[]
  /** There may be more: not everything was looked at, or told. */
  readonly isTruncated: boolean
}

export interface FindDependencies {
  readonly files: Pick<Files, 'walk'>
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly signal: AbortSignal
}

/** Finds files and folders by their names, in the order of a walk. */
export async function findNames(
  folder: string,
  isMeant: NameTest,
  limits: FindLimits,
  { files, now, signal }: FindDependencies,
): Promise<FindResult> {
  const found: FoundName[] = []
  const deadlineMs = now() + limits.timeMs
  let nodes = 0
  let isShallow = false
  // The walk is given more than is used, so that it is known who ended it.
  const bounds = { maxNodes: limits.maxNodes + 1, maxDepth: limits.maxDepth, timeMs: 2 * limits.timeMs }
  for await (const batch of files.walk(folder, bounds, signal)) {
    for (const entry of batch) {
      nodes += 1
      if (nodes > limits.maxNodes) return { found, isTruncated: true }
      if (entry.kind === 'folder' && depthOf(entry.path) >= limits.maxDepth) isShallow = true
      if (!isMeant(entry.name)) continue
      if (found.length >= limits.maxResults) return { found, isTruncated: true }
      found.push(toName(entry))
    }
    if (now() >= deadlineMs) return { found, isTruncated: true }
  }
  return { found, isTruncated: isShallow }
}

function depthOf(path: string): number {
  return path.split('/').length
}

function toName({ name, path, kind, target }: Found): FoundName {
  return { name, path, kind, isFolder: kind === 'folder' || target === 'folder' }
}
