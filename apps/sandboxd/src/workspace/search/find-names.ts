import type { FileKind, Files, Found } from '../files.ts'
import { isHiddenName } from '../files/hidden-name.ts'
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
  readonly signal: AbortSignal
}

/** Finds files and folders by their names, in the order of a walk. */
export async function findNames(
  folder: string,
  isMeant: NameTest,
  { maxResults, ...limits }: FindLimits,
  { files, signal }: FindDependencies,
): Promise<FindResult> {
  const found: FoundName[] = []
  let isTruncated = false
  const reached = (): void => {
    isTruncated = true
  }
  for await (const batch of files.walk(folder, { ...limits, reached }, signal)) {
    for (const entry of batch) {
      if (!isMeant(entry.name) || isHiddenName(entry.name)) continue
      if (found.length >= maxResults) return { found, isTruncated: true }
      found.push(toName(entry))
    }
  }
  return { found, isTruncated }
}

function toName({ name, path, kind, target }: Found): FoundName {
  return { name, path, kind, isFolder: kind === 'folder' || target === 'folder' }
}
