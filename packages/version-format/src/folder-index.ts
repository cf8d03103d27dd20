import { damaged } from './byte-stream.ts'
import { decodeFolder, type ManifestEntry, readManifest, type SegmentId } from './manifest.ts'
import { latin1Text, parentOf } from './names.ts'
import { removeFolders } from './tree.ts'

interface EncodedFolder {
  readonly bytes: Uint8Array
  readonly segments: readonly SegmentId[]
}

/**
 * The folders of a version, decoded when they are read: a tenth of the memory of a `VersionTree`, for programs that read a few
 * of them. Built from the encoded manifests, from the base on; throws `version_damaged`.
 */
export class FolderIndex {
  readonly #folders = new Map<string, EncodedFolder>()

  constructor(manifests: readonly Uint8Array[]) {
    for (const [at, bytes] of manifests.entries()) {
      const { isBase, removed, segments, folders } = readManifest(bytes)
      if (at === 0 && !isBase) throw damaged('its first part is no base')
      if (isBase) this.#folders.clear()
      removeFolders(this.#folders, removed)
      for (const folder of folders) this.#folders.set(folder.listing.path, { bytes: folder.bytes, segments })
    }
  }

  /** Paths of all folders. */
  get paths(): Iterable<string> {
    return this.#folders.keys()
  }

  /** Entries of a folder; undefined when there is none at the path. */
  entries(path: string): readonly ManifestEntry[] | undefined {
    const folder = this.#folders.get(path)
    return folder === undefined ? undefined : decodeFolder(folder.bytes, folder.segments).entries
  }

  /** The entry at a path; undefined when there is none, and for the top. */
  find(path: string): ManifestEntry | undefined {
    const parent = parentOf(path)
    if (parent === undefined) return undefined
    const name = path.slice(parent === '' ? 0 : parent.length + 1)
    return this.entries(parent)?.find((entry) => latin1Text(entry.name) === name)
  }

  /** Segments with content of the version. */
  get segments(): ReadonlySet<SegmentId> {
    const used = new Set<SegmentId>()
    for (const path of this.paths) for (const entry of this.entries(path) ?? []) addSegments(entry, used)
    return used
  }
}

function addSegments(entry: ManifestEntry, used: Set<SegmentId>): void {
  if (entry.kind !== 'file') return
  for (const block of entry.blocks) if (block !== undefined) used.add(block.segment)
}
