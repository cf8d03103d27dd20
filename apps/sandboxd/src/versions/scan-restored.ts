import { latin1Text, pathIn, type VersionTree } from '@sandwire/version-format'
import { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } from '../workspace/beneath/constants.ts'
import { Descriptor, openAt } from '../workspace/beneath/system-calls.ts'
import { cName } from '../workspace/files/context.ts'
import type { SaveRoot } from './save.ts'
import type { ScannedFolder } from './saved-tree.ts'

/** The folders of a version that was just restored, with the status that its files have now. */
export function* scanRestored(roots: readonly SaveRoot[], tree: VersionTree): Generator<ScannedFolder> {
  yield { high: 0, low: 0, statuses: new Int32Array(0), listing: { path: '', entries: tree.get('') ?? [] } }
  for (const root of roots) if (tree.has(root.name)) yield* scanFolder(root, root.fd, root.name, tree)
}

function* scanFolder(root: SaveRoot, fd: number, path: string, tree: VersionTree): Generator<ScannedFolder> {
  const entries = tree.get(path) ?? []
  const summary = root.scanner.summarize(fd, path)
  const found = root.scanner.list(fd, path)
  if (typeof summary === 'number' || typeof found === 'number') return
  const statuses = new Map(found.map(({ name, high, low }) => [name, [high, low]] as const))
  yield {
    high: summary.high,
    low: summary.low,
    // An entry without a status is read again by the next save.
    statuses: Int32Array.from(entries.flatMap(({ name }) => statuses.get(latin1Text(name)) ?? [0, 0])),
    listing: { path, entries },
  }
  for (const entry of entries) {
    if (entry.kind !== 'folder') continue
    const name = latin1Text(entry.name)
    const opened = openAt(fd, cName(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    if (opened < 0) continue
    using folder = new Descriptor(opened)
    yield* scanFolder(root, folder.fd, pathIn(path, name), tree)
  }
}
