import { damaged } from './byte-stream.ts'
import type { ManifestEntry, ManifestPart } from './manifest.ts'
import { latin1Text, parentOf, pathIn } from './names.ts'

/** The folders of a version by path; the top (empty path) lists the saved roots. */
export type VersionTree = ReadonlyMap<string, readonly ManifestEntry[]>

/** Builds the tree of a version from its base and the parts after it. Throws `version_damaged` when they do not fit together. */
export function buildTree(parts: readonly ManifestPart[]): VersionTree {
  const [base] = parts
  if (base?.isBase !== true) throw damaged('its first part is no base')
  const tree = new Map<string, readonly ManifestEntry[]>()
  for (const [at, part] of parts.entries()) {
    if (at > 0 && part.isBase) tree.clear()
    removeFolders(tree, part.removed)
    for (const { path, entries } of part.folders) tree.set(path, entries)
  }
  checkTree(tree)
  return tree
}

/** Removes folders and all folders below them. */
export function removeFolders(tree: Map<string, unknown>, removed: readonly string[]): void {
  if (removed.length === 0) return
  const gone = new Set(removed)
  for (const path of tree.keys()) if (isBelow(path, gone)) tree.delete(path)
}

function isBelow(path: string, folders: ReadonlySet<string>): boolean {
  for (let at: string | undefined = path; at !== undefined; at = parentOf(at))
    if (folders.has(at)) return true
  return false
}

/** Every folder has a list, and every list has a folder. */
function checkTree(tree: VersionTree): void {
  if (!tree.has('')) throw damaged('it has no top folder')
  let folders = 1
  for (const [path, entries] of tree)
    for (const entry of entries) {
      if (entry.kind !== 'folder') continue
      folders += 1
      if (!tree.has(pathIn(path, latin1Text(entry.name)))) throw damaged('the content of a folder is missing')
    }
  if (folders !== tree.size) throw damaged('it has the content of a folder that does not exist')
}
