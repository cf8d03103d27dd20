import {
  BLOCK_BYTES,
  type ChunkRef,
  decodeFolder,
  encodeFolder,
  type FileEntry,
  type FolderListing,
  MAX_CHUNKS,
  type ManifestEntry,
  type SegmentId,
  SegmentNumbers,
  type VersionTree,
} from '@sandwire/version-format'

/** A segment of which less is needed is worth storing the rest again. */
const MIN_NEEDED_SHARE = 0.5

const NO_STATUSES = new Int32Array(0)

/** What was saved of one folder. */
export interface SavedFolder {
  /** Summary of the folder when it was saved; see `FolderScanner.summarize`. */
  readonly high: number
  readonly low: number
  /** Status hashes of its entries in order, two numbers each; zeros for an entry that must be read again. */
  readonly statuses: Int32Array
  /**
   * Set for a folder of a version that was restored, or is on the disk of an earlier process: there are no statuses, and entries
   * that last changed before this time, in milliseconds, are as saved.
   */
  readonly unchangedBeforeMs?: number
  /** The encoded listing: a tenth of the memory that objects would take. */
  readonly listing: Uint8Array
}

/** A folder as a save found it. */
export interface ScannedFolder {
  readonly high: number
  readonly low: number
  readonly statuses: Int32Array
  readonly listing: FolderListing
}

/** What one save changes; it takes effect when control has committed the version. */
export interface TreeChange {
  readonly isBase: boolean
  /** Clock before the last scan of all folders, in milliseconds. */
  readonly scannedMs: number
  readonly folders: readonly ScannedFolder[]
  /** Topmost removed folders. */
  readonly removed: readonly string[]
  /** New chunks by hash. */
  readonly chunks: ReadonlyMap<string, ChunkRef>
  /** Bytes of content in each new segment. */
  readonly contentBytes: ReadonlyMap<SegmentId, number>
}

type Content = Pick<TreeChange, 'chunks' | 'contentBytes' | 'scannedMs'>

/** A folder whose status changed and whose listing did not. */
export interface RefreshedFolder extends Omit<ScannedFolder, 'listing'> {
  readonly path: string
}

/** The tree of the last committed version, with where the content of every file is stored. */
export class SavedTree {
  readonly #folders = new Map<string, SavedFolder>()
  #scannedMs = 0
  readonly #numbers = new SegmentNumbers()
  /** References to each segment from the tree, by its number. */
  readonly #uses: number[] = []
  /** Chunks by hash: the segment's number times `MAX_CHUNKS`, plus the chunk. */
  readonly #chunks = new Map<string, number>()
  /** Bytes of content in each segment, needed or not. */
  readonly #contentBytes = new Map<SegmentId, number>()

  get scannedMs(): number {
    return this.#scannedMs
  }

  folder(path: string): SavedFolder | undefined {
    return this.#folders.get(path)
  }

  entriesOf(folder: SavedFolder): readonly ManifestEntry[] {
    return decodeFolder(folder.listing, this.#numbers.ids).entries
  }

  /** Where content with this hash is stored, in a segment that the current version uses. */
  findChunk(hash: string): ChunkRef | undefined {
    const packed = this.#chunks.get(hash)
    if (packed === undefined) return undefined
    const number = Math.floor(packed / MAX_CHUNKS)
    const segment = this.#numbers.ids[number]
    if (segment === undefined || (this.#uses[number] ?? 0) === 0) return undefined
    return { segment, chunk: packed % MAX_CHUNKS }
  }

  /** Segments that the version needs, with the number of references to each. */
  segments(): ReadonlyMap<SegmentId, number> {
    const used = new Map<SegmentId, number>()
    for (const [number, uses] of this.#uses.entries()) {
      const id = this.#numbers.ids[number]
      if (uses > 0 && id !== undefined) used.set(id, uses)
    }
    return used
  }

  /** Segments that the tree would need after a change. */
  segmentsAfter(change: TreeChange): readonly SegmentId[] {
    const uses = new Map(this.segments())
    const count = (entries: readonly ManifestEntry[], by: number): void => {
      forEachSegment(entries, (segment) => uses.set(segment, (uses.get(segment) ?? 0) + by))
    }
    for (const { listing } of change.folders) {
      const before = this.#folders.get(listing.path)
      if (before !== undefined) count(this.entriesOf(before), -1)
      count(listing.entries, 1)
    }
    for (const path of this.#below(change.removed)) {
      const before = this.#folders.get(path)
      if (before !== undefined) count(this.entriesOf(before), -1)
    }
    return [...uses].filter(([, count]) => count > 0).map(([id]) => id)
  }

  /** Older segments of which less than half would be needed after a change that lists every folder. */
  sparseAfter({ isBase, folders }: TreeChange): readonly SegmentId[] {
    if (!isBase || this.#contentBytes.size === 0) return []
    const needed = new Map<SegmentId, Map<number, number>>()
    for (const { listing } of folders)
      for (const entry of listing.entries) if (entry.kind === 'file') countNeeded(entry, needed)
    const sparse: SegmentId[] = []
    for (const [id, bytes] of this.#contentBytes) {
      const chunks = needed.get(id)
      if (chunks === undefined) continue
      const neededBytes = chunks.values().reduce((sum, each) => sum + each, 0)
      if (neededBytes < bytes * MIN_NEEDED_SHARE) sparse.push(id)
    }
    return sparse
  }

  /** Makes this the tree of a version whose files are on the disk; those that last changed before this time are as saved. */
  load(tree: VersionTree, content: Content, unchangedBeforeMs: number): void {
    this.#addContent(content)
    for (const [path, entries] of tree) {
      this.#count(entries, 1)
      const listing = encodeFolder({ path, entries }, this.#numbers)
      this.#folders.set(path, { high: 0, low: 0, statuses: NO_STATUSES, unchangedBeforeMs, listing })
    }
    this.#dropUnusedChunks()
  }

  /** Takes over the status of folders that are saved as they are. */
  refresh(folders: readonly RefreshedFolder[]): void {
    for (const { path, high, low, statuses } of folders) {
      const folder = this.#folders.get(path)
      if (folder !== undefined) this.#folders.set(path, { high, low, statuses, listing: folder.listing })
    }
  }

  apply(change: TreeChange): void {
    this.#addContent(change)
    for (const path of this.#below(change.removed)) this.#forget(path)
    for (const { listing, high, low, statuses } of change.folders) {
      this.#forget(listing.path)
      this.#count(listing.entries, 1)
      this.#folders.set(listing.path, { high, low, statuses, listing: encodeFolder(listing, this.#numbers) })
    }
    if (change.isBase) this.#dropUnusedChunks()
  }

  #addContent({ chunks, contentBytes, scannedMs }: Content): void {
    this.#scannedMs = scannedMs
    for (const [hash, ref] of chunks)
      this.#chunks.set(hash, this.#numbers.of(ref.segment) * MAX_CHUNKS + ref.chunk)
    for (const [segment, bytes] of contentBytes) this.#contentBytes.set(segment, bytes)
  }

  #forget(path: string): void {
    const folder = this.#folders.get(path)
    if (folder === undefined) return
    this.#count(this.entriesOf(folder), -1)
    this.#folders.delete(path)
  }

  #count(entries: readonly ManifestEntry[], by: number): void {
    forEachSegment(entries, (segment) => {
      const number = this.#numbers.of(segment)
      this.#uses[number] = (this.#uses[number] ?? 0) + by
    })
  }

  /** These folders and all folders below them. */
  #below(folders: readonly string[]): readonly string[] {
    if (folders.length === 0) return []
    const roots = new Set(folders)
    return [...this.#folders.keys()].filter((path) => hasAncestorIn(path, roots))
  }

  #dropUnusedChunks(): void {
    for (const [hash, packed] of this.#chunks)
      if ((this.#uses[Math.floor(packed / MAX_CHUNKS)] ?? 0) === 0) this.#chunks.delete(hash)
    const used = this.segments()
    for (const id of this.#contentBytes.keys()) if (!used.has(id)) this.#contentBytes.delete(id)
  }
}

/** Adds the sizes of the chunks of a file, each chunk once. */
function countNeeded({ sizeBytes, blocks }: FileEntry, needed: Map<SegmentId, Map<number, number>>): void {
  for (const [at, block] of blocks.entries()) {
    if (block === undefined) continue
    const chunks = needed.get(block.segment) ?? new Map<number, number>()
    needed.set(block.segment, chunks)
    chunks.set(block.chunk, Math.min(BLOCK_BYTES, sizeBytes - at * BLOCK_BYTES))
  }
}

function hasAncestorIn(path: string, folders: ReadonlySet<string>): boolean {
  let at = path
  for (;;) {
    if (folders.has(at)) return true
    const slash = at.lastIndexOf('/')
    if (slash < 0) return false
    at = at.slice(0, slash)
  }
}

/** Calls back for every reference; a generator would take much of the time of a first save. */
function forEachSegment(entries: readonly ManifestEntry[], visit: (segment: SegmentId) => void): void {
  for (const entry of entries)
    if (entry.kind === 'file') for (const block of entry.blocks) if (block !== undefined) visit(block.segment)
}

/** Key of a chunk's hash. */
export function hashKey(hash: Uint8Array): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.byteLength).toString('latin1')
}
