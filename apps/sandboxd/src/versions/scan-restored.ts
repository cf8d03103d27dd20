import { latin1Text, type ManifestEntry, pathIn, type VersionTree } from '@sandwire/version-format'
import { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } from '../workspace/beneath/constants.ts'
import { Descriptor, openAt } from '../workspace/beneath/system-calls.ts'
import { cName } from '../workspace/files/context.ts'
import type { SaveRoot } from './save.ts'
import type { ScannedFolder } from './saved-tree.ts'
import type { FoundEntry } from './scan.ts'

/** True when what is on the disk is what the version has. */
export type IsSaved = (found: FoundEntry, entry: ManifestEntry) => boolean

/**
 * The folders of a version with the status that its files have on the disk. An entry that is not known to be as saved has no
 * status, so that the next save reads it.
 */
export function* scanVersion(
  roots: readonly SaveRoot[],
  tree: VersionTree,
  isSaved: IsSaved,
): Generator<ScannedFolder> {
  yield unknownFolder('', tree)
  for (const root of roots)
    if (tree.has(root.name)) yield* scanFolder({ root, tree, isSaved }, root.fd, root.name)
}

interface Scan {
  readonly root: SaveRoot
  readonly tree: VersionTree
  readonly isSaved: IsSaved
}

function unknownFolder(path: string, tree: VersionTree): ScannedFolder {
  const entries = tree.get(path) ?? []
  return { high: 0, low: 0, statuses: new Int32Array(entries.length * 2), listing: { path, entries } }
}

function* scanFolder(scan: Scan, fd: number, path: string): Generator<ScannedFolder> {
  const { root, tree, isSaved } = scan
  const entries = tree.get(path) ?? []
  const found = root.scanner.list(fd, path)
  if (typeof found === 'number') yield* unknownBelow(path, tree)
  else {
    const byName = new Map(found.entries.map((each) => [each.name, each]))
    const statuses = entries.flatMap((entry) => {
      const each = byName.get(latin1Text(entry.name))
      return each !== undefined && isSaved(each, entry) ? [each.high, each.low] : [0, 0]
    })
    const { high, low } = found
    yield { high, low, statuses: Int32Array.from(statuses), listing: { path, entries } }
    for (const entry of entries) {
      if (entry.kind !== 'folder') continue
      const name = latin1Text(entry.name)
      const opened = openAt(fd, cName(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      const below = pathIn(path, name)
      if (opened < 0) {
        yield* unknownBelow(below, tree)
        continue
      }
      using folder = new Descriptor(opened)
      yield* scanFolder(scan, folder.fd, below)
    }
  }
}

/** A folder that is gone or cannot be read, and those below it; the next save finds out. */
function* unknownBelow(path: string, tree: VersionTree): Generator<ScannedFolder> {
  yield unknownFolder(path, tree)
  for (const entry of tree.get(path) ?? [])
    if (entry.kind === 'folder') yield* unknownBelow(pathIn(path, latin1Text(entry.name)), tree)
}

/**
 * For files that were just restored. Names of one file are read again: their group is a number of the disk that they were saved
 * from, and could be that of other files on this one.
 */
export const isJustRestored: IsSaved = (_, entry) => entry.kind !== 'file' || entry.linkGroup === 0

/** Kernels before 6.13 count file times in ticks of at most this. */
const TICK_MS = 10

/** For files that no process has changed since a scan: the kernel sets the change time, which a program cannot set back. */
export function isUnchangedSince(scannedMs: number): IsSaved {
  return (found, entry) =>
    found.kind === entry.kind &&
    found.changedMs < scannedMs - TICK_MS &&
    found.mode === entry.mode &&
    found.seconds === entry.seconds &&
    found.nanos === entry.nanos &&
    (entry.kind !== 'file' || (found.sizeBytes === entry.sizeBytes && found.linkGroup === entry.linkGroup))
}
