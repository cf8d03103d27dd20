import type { FolderIndex } from './folder-index.ts'
import type { FileEntry, ManifestEntry } from './manifest.ts'
import { latin1Text, pathIn } from './names.ts'

/** One entry that differs between two versions. */
export interface VersionChange {
  /** One character per byte. */
  readonly path: string
  readonly change: 'added' | 'removed' | 'modified'
  readonly kind: ManifestEntry['kind']
  /** Sizes of files; null for anything else and where there is no file. */
  readonly beforeBytes: number | null
  readonly afterBytes: number | null
}

/** Yields what differs, folder by folder in the order of their paths. A changed time alone is no difference. */
export function* compareVersions(
  before: FolderIndex,
  after: FolderIndex,
): Generator<VersionChange, void, void> {
  const paths = new Set([...before.paths, ...after.paths])
  for (const folder of [...paths].toSorted()) {
    const [old, now] = [byName(before.entries(folder)), byName(after.entries(folder))]
    for (const name of [...new Set([...old.keys(), ...now.keys()])].toSorted()) {
      const [was, is] = [old.get(name), now.get(name)]
      if (was !== undefined && is !== undefined && isSame(was, is)) continue
      const entry = is ?? was
      if (entry === undefined) continue
      yield {
        path: pathIn(folder, name),
        change: was === undefined ? 'added' : is === undefined ? 'removed' : 'modified',
        kind: entry.kind,
        beforeBytes: sizeOf(was),
        afterBytes: sizeOf(is),
      }
    }
  }
}

function byName(entries: readonly ManifestEntry[] = []): ReadonlyMap<string, ManifestEntry> {
  return new Map(entries.map((entry) => [latin1Text(entry.name), entry]))
}

function sizeOf(entry: ManifestEntry | undefined): number | null {
  return entry?.kind === 'file' ? entry.sizeBytes : null
}

function isSame(a: ManifestEntry, b: ManifestEntry): boolean {
  if (a.kind !== b.kind || a.mode !== b.mode) return false
  if (a.kind === 'link' && b.kind === 'link') return latin1Text(a.target) === latin1Text(b.target)
  return a.kind !== 'file' || b.kind !== 'file' || hasSameContent(a, b)
}

/** Content that was stored again elsewhere has the same size and time. */
function hasSameContent(a: FileEntry, b: FileEntry): boolean {
  if (a.sizeBytes !== b.sizeBytes) return false
  if (a.seconds === b.seconds && a.nanos === b.nanos) return true
  return a.blocks.every((block, at) => {
    const other = b.blocks[at]
    return block?.segment === other?.segment && block?.chunk === other?.chunk
  })
}
