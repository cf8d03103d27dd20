import {
  BLOCK_BYTES,
  type BuiltSegment,
  type Compression,
  encodeFolder,
  encodeManifest,
  type FolderListing,
  latin1Bytes,
  type ManifestEntry,
  pathIn,
  type SegmentId,
  SegmentNumbers,
} from '@sandwire/version-format'
import {
  EACCES,
  O_DIRECTORY,
  O_NOCTTY,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_RDONLY,
} from '../workspace/beneath/constants.ts'
import { chmodFd, closeFd, Descriptor, openAt, readLinkAt } from '../workspace/beneath/system-calls.ts'
import { cName } from '../workspace/files/context.ts'
import type { ContentArena } from './content-arena.ts'
import { ContentPacker } from './content-packer.ts'
import type { FolderScanner, FoundEntry } from './scan.ts'
import {
  type RefreshedFolder,
  type SavedFolder,
  type SavedTree,
  type ScannedFolder,
  type TreeChange,
} from './saved-tree.ts'
import { chmodAt, readXattrs } from './system-calls.ts'

/** Each level of folders holds a descriptor open. */
const MAX_DEPTH = 512
/** Unreadable paths that are named; further ones are counted. */
const MAX_NAMED = 100
/** Attempts to read a file that changes meanwhile. */
const MAX_READS = 3
/** Kernels before 6.13 count file times in ticks of at most this. */
const TICK_MS = 10
const MAX_TARGET_BYTES = 4096

export interface SaveRoot {
  /** Name under which the folder is saved. */
  readonly name: string
  readonly fd: number
  readonly scanner: FolderScanner
}

export interface SaveOptions {
  readonly roots: readonly SaveRoot[]
  /** Folders that are known to have changed, with the root's name in front; absent: every folder is scanned. */
  readonly hints?: readonly string[]
  readonly tree: SavedTree
  readonly compression: Compression
  readonly arena: ContentArena
  readonly segmentId: (number: number) => SegmentId
  /** Version record of control, which the last segment carries. */
  readonly record: Uint8Array
  /** Lists every folder, so that the version needs no earlier manifest. */
  readonly isBase: boolean
  /** Makes a segment with the record even if nothing changed. */
  readonly isRecorded: boolean
  /** Segments whose content is stored again, so that control can delete them. */
  readonly replaced: ReadonlySet<SegmentId>
  /** Wall clock before changed pages were written to the disk. A page that is dirty can change again without a new time. */
  readonly syncedMs: number
  /** Called with every folder that is scanned, while it is open. */
  readonly onFolder?: (fd: number, path: string) => void
  /** True while the processes of the sandbox are stopped, or there are none. */
  readonly isPaused: () => boolean
}

export interface SaveResult {
  readonly change: TreeChange
  /** Folders that turned out to be saved as they are. */
  readonly refreshed: readonly RefreshedFolder[]
  /** Segments that the version needs. */
  readonly segments: readonly SegmentId[]
  /** Those of which less than half is needed; only a base finds them. */
  readonly sparse: readonly SegmentId[]
  /** Number of segments that the save made; 0 when nothing changed. */
  readonly made: number
  /** Processes ran while files were read: the version may not show one moment. */
  readonly isFuzzy: boolean
  readonly unreadable: readonly string[]
  readonly unreadableCount: number
}

/** `read`: every file has been read, and processes may go on. */
export type SaveStep = 'read' | BuiltSegment

type Steps<Result> = Generator<SaveStep, Result, void>

/** An entry, and its status when it was read. */
interface Read {
  readonly entry: ManifestEntry
  readonly status: FoundEntry
}

interface OpenFolder {
  readonly root: SaveRoot
  readonly fd: number
  readonly path: string
  readonly depth: number
}

/** Scans the roots, reads what changed, and packs it into segments. The tree is changed by the caller, after the commit. */
export class Save {
  readonly #options: SaveOptions
  readonly #scanned: ScannedFolder[] = []
  readonly #removed: string[] = []
  readonly #unreadable: string[] = []
  #unreadableCount = 0
  readonly #packer: ContentPacker
  /** Undefined: every folder is scanned. */
  #hints: readonly string[] | undefined
  /** A file with several names has changed; inotify reports only the folder of the name that was used. */
  #hasChangedLinks = false

  constructor(options: SaveOptions) {
    this.#options = options
    this.#hints = options.hints
    this.#packer = new ContentPacker(options)
  }

  /** Yields `read` once, and every segment. */
  *run(): Steps<SaveResult> {
    const { tree, isBase, isRecorded, isPaused, syncedMs, record } = this.#options
    yield* this.#scanTop()
    if (this.#hints !== undefined && this.#hasChangedLinks) {
      this.#startOver()
      yield* this.#scanTop()
    }
    const isFuzzy = !isPaused()
    yield 'read'
    yield* this.#packer.pack()
    const { folders, refreshed } = this.#sortOut()
    const scannedMs = this.#hints === undefined ? Math.floor(syncedMs) : tree.scannedMs
    const change: TreeChange = {
      isBase,
      scannedMs,
      folders,
      removed: this.#removed,
      chunks: this.#packer.chunks,
      contentBytes: this.#packer.contentBytes,
    }
    if (folders.length > 0 || this.#removed.length > 0 || isRecorded)
      yield this.#packer.finish({
        manifest: encodeManifest({ ...change, folders: folders.map(({ listing }) => listing) }),
        record,
      })
    return {
      change,
      refreshed,
      segments: tree.segmentsAfter(change),
      sparse: tree.sparseAfter(change),
      made: this.#packer.made,
      isFuzzy,
      unreadable: this.#unreadable,
      unreadableCount: this.#unreadableCount,
    }
  }

  /** Distinguishes folders that differ from the saved ones from those that were only touched. */
  #sortOut(): { readonly folders: readonly ScannedFolder[]; readonly refreshed: readonly RefreshedFolder[] } {
    const { tree, isBase } = this.#options
    const folders: ScannedFolder[] = []
    const refreshed: RefreshedFolder[] = []
    for (const scanned of this.#scanned) {
      const { path } = scanned.listing
      const saved = tree.folder(path)
      const isSame =
        saved !== undefined && isSameListing(scanned.listing, { path, entries: tree.entriesOf(saved) })
      if (isBase || !isSame) folders.push(scanned)
      else refreshed.push({ path, high: scanned.high, low: scanned.low, statuses: scanned.statuses })
    }
    return { folders, refreshed }
  }

  /** Scans every folder instead of the hinted ones; content that was read already is found by its hash. */
  #startOver(): void {
    this.#hints = undefined
    this.#scanned.length = 0
    this.#removed.length = 0
    this.#unreadable.length = 0
    this.#unreadableCount = 0
  }

  /** The top folder lists the roots themselves. */
  *#scanTop(): Steps<void> {
    const { roots } = this.#options
    const found: FoundEntry[] = []
    for (const { name, fd, scanner } of roots.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const entry = scanner.find(fd, '.')
      if (entry !== undefined) found.push({ ...entry, name, kind: 'folder', linkGroup: 0 })
    }
    const [first] = roots
    if (first === undefined) return
    yield* this.#compare({ root: first, fd: -1, path: '', depth: 0 }, { high: 0, low: 0 }, found)
    for (const root of roots) {
      const top = { root, fd: root.fd, path: root.name, depth: 0 }
      if (this.#hints === undefined) yield* this.#scan(top)
      else yield* this.#scanHinted(top, this.#hints)
    }
  }

  *#scanHinted(top: OpenFolder, hints: readonly string[]): Steps<void> {
    for (const path of hints) {
      if (path === top.path) yield* this.#scan(top)
      if (!path.startsWith(`${top.path}/`)) continue
      using opened = new DisposableStack()
      let fd: number | undefined = top.fd
      for (const name of path.slice(top.path.length + 1).split('/'))
        if (fd !== undefined) fd = opened.use(this.#openFolder(fd, name))?.fd
      // Gone, or on a path that changed: the folder above it is hinted too.
      if (fd === undefined) continue
      yield* this.#scan({ ...top, fd, path, depth: path.split('/').length })
    }
  }

  /** Opens a folder. Its owner may have taken its own right to use it away: it is granted until the folder is closed. */
  #openFolder(above: number, name: string): ({ readonly fd: number } & Disposable) | undefined {
    const terminated = cName(name)
    const fd = openAt(above, terminated, FOLDER_FLAGS)
    if (fd >= 0) return new Descriptor(fd)
    const mode = fd === -EACCES ? this.#options.roots[0]?.scanner.find(above, name)?.mode : undefined
    if (mode === undefined || chmodAt(above, terminated, mode | 0o500) < 0) return undefined
    const opened = openAt(above, terminated, FOLDER_FLAGS)
    if (opened < 0) return undefined
    const folder = new DisposableStack()
    folder.use(new Descriptor(opened))
    folder.defer(() => chmodFd(opened, mode))
    return Object.assign(folder, { fd: opened })
  }

  *#scan(folder: OpenFolder): Steps<void> {
    const { tree } = this.#options
    const { root, fd, path, depth } = folder
    // Before it is read, so that no later change goes unnoticed.
    this.#options.onFolder?.(fd, path)
    const isNew = this.#options.isBase || tree.folder(path) === undefined
    let summary = isNew ? undefined : root.scanner.summarize(fd, path)
    if (typeof summary === 'number') return this.#skipFolder(path)
    if (summary === undefined || this.#needsComparing(path, summary)) {
      const found = root.scanner.list(fd, path)
      if (typeof found === 'number') return this.#skipFolder(path)
      yield* this.#compare(folder, found, found.entries)
      summary = found
    }
    for (const name of summary.subfolders) {
      const below = pathIn(path, name)
      // A known folder that is not hinted has not changed.
      if (this.#hints !== undefined && tree.folder(below) !== undefined) continue
      using inner = depth >= MAX_DEPTH ? undefined : this.#openFolder(fd, name)
      if (inner === undefined) {
        this.#skipFolder(below)
        continue
      }
      yield* this.#scan({ root, fd: inner.fd, path: below, depth: depth + 1 })
    }
  }

  #needsComparing(path: string, { high, low }: { readonly high: number; readonly low: number }): boolean {
    const { tree, replaced } = this.#options
    const saved = tree.folder(path)
    if (saved === undefined || saved.high !== high || saved.low !== low) return true
    if (saved.unchangedBeforeMs !== undefined || saved.statuses.includes(0)) return true
    return replaced.size > 0 && tree.entriesOf(saved).some((entry) => this.#isReplaced(entry))
  }

  #isReplaced(entry: ManifestEntry): boolean {
    const { replaced } = this.#options
    if (entry.kind !== 'file' || replaced.size === 0) return false
    return entry.blocks.some((block) => block !== undefined && replaced.has(block.segment))
  }

  /** Lists a folder: entries with the same status as before are taken over, the others are read. */
  *#compare(
    folder: OpenFolder,
    { high, low }: { readonly high: number; readonly low: number },
    found: readonly FoundEntry[],
  ): Steps<void> {
    const { tree, syncedMs } = this.#options
    const { path } = folder
    const saved = tree.folder(path)
    const before = new Map(
      (saved === undefined ? [] : tree.entriesOf(saved)).map((entry, at) => [nameOf(entry), { entry, at }]),
    )
    const statuses: number[] = []
    const entries: ManifestEntry[] = []
    for (const each of found) {
      const old = before.get(each.name)
      const isSame = old !== undefined && this.#isSame(saved, old, each)
      if (!isSame && each.linkGroup !== 0) this.#hasChangedLinks = true
      if (this.#packer.isFull) yield* this.#packer.pack()
      const read = isSame
        ? { entry: old.entry, status: each }
        : (this.#readSmall(folder, each) ?? (yield* this.#read(folder, each, old?.entry)))
      if (old?.entry.kind === 'folder' && read?.entry.kind !== 'folder')
        this.#removed.push(pathIn(path, each.name))
      before.delete(each.name)
      if (read === undefined) continue
      entries.push(read.entry)
      const isSettled = read.entry.kind !== 'file' || read.status.changedMs < syncedMs - TICK_MS
      statuses.push(isSettled ? read.status.high : 0, isSettled ? read.status.low : 0)
    }
    for (const [name, { entry }] of before)
      if (entry.kind === 'folder') this.#removed.push(pathIn(path, name))
    this.#scanned.push({ high, low, statuses: new Int32Array(statuses), listing: { path, entries } })
  }

  /** True when an entry need not be read. */
  #isSame(
    saved: SavedFolder | undefined,
    { entry, at }: { readonly entry: ManifestEntry; readonly at: number },
    found: FoundEntry,
  ): boolean {
    return (hasStatus(saved, at, found) || isUnchanged(saved, entry, found)) && !this.#isReplaced(entry)
  }

  /** Reads a file of less than a block that does not change meanwhile; undefined for everything else. */
  #readSmall({ root, fd }: OpenFolder, found: FoundEntry): Read | undefined {
    const { name, kind, mode, seconds, nanos, sizeBytes, isSparse, linkGroup } = found
    if (kind !== 'file' || sizeBytes >= BLOCK_BYTES || isSparse) return undefined
    const opened = openAt(fd, cName(name), FILE_FLAGS)
    if (opened < 0) return undefined
    const content = this.#packer.readSmall(opened, sizeBytes)
    closeFd(opened)
    if (content === undefined) return undefined
    if (!this.#options.isPaused()) {
      const after = root.scanner.find(fd, name)
      if (after?.high !== found.high || after.low !== found.low) return undefined
    }
    const { xattrs, blocks } = content
    return {
      entry: {
        kind,
        name: latin1Bytes(name),
        mode,
        seconds,
        nanos,
        xattrs,
        sizeBytes,
        isSparse,
        linkGroup,
        blocks,
      },
      status: found,
    }
  }

  /** Reads something that is new or has changed; undefined when it is gone. What cannot be read stays as it was saved. */
  *#read(folder: OpenFolder, found: FoundEntry, saved: ManifestEntry | undefined): Steps<Read | undefined> {
    const { mode, seconds, nanos } = found
    const attributes = { name: latin1Bytes(found.name), mode, seconds, nanos, xattrs: [] }
    switch (found.kind) {
      case 'folder':
        return {
          entry: { kind: 'folder', ...attributes, xattrs: this.#folderXattrs(folder, found.name) },
          status: found,
        }
      case 'fifo':
        return { entry: { kind: 'fifo', ...attributes }, status: found }
      case 'link': {
        const target = Buffer.alloc(MAX_TARGET_BYTES)
        const size = readLinkAt(folder.fd, cName(found.name), target)
        if (size <= 0) return undefined
        return {
          entry: { kind: 'link', ...attributes, target: new Uint8Array(target.subarray(0, size)) },
          status: found,
        }
      }
      case 'file':
        return yield* this.#readFile(folder, found, saved)
    }
  }

  #folderXattrs({ fd, path }: OpenFolder, name: string): ReturnType<typeof readXattrs> {
    // The top folder is not on the disk; its names are those of the roots.
    const root = path === '' ? this.#options.roots.find((each) => each.name === name) : undefined
    if (root !== undefined) return readXattrs(root.fd)
    const opened = openAt(fd, cName(name), FOLDER_FLAGS)
    if (opened < 0) return []
    using folder = new Descriptor(opened)
    return readXattrs(folder.fd)
  }

  *#readFile(
    { root, fd, path }: OpenFolder,
    found: FoundEntry,
    saved: ManifestEntry | undefined,
  ): Steps<Read | undefined> {
    let status = found
    for (let reads = 1; ; reads += 1) {
      const opened = openAt(fd, cName(found.name), FILE_FLAGS)
      const granted = opened === -EACCES ? this.#openClosed(fd, found.name) : opened
      const content = granted < 0 ? undefined : yield* this.#packer.read(granted, status)
      // A file that nothing can have changed need not be looked at again.
      const isSure = opened >= 0 && content?.sizeBytes === status.sizeBytes && this.#options.isPaused()
      const after = isSure ? status : root.scanner.find(fd, found.name)
      if (after === undefined || after.kind !== 'file') return undefined
      if (content === undefined) {
        this.#addUnreadable(pathIn(path, found.name))
        return saved?.kind === 'file' ? { entry: saved, status: { ...after, high: 0, low: 0 } } : undefined
      }
      const isSteady = after.high === status.high && after.low === status.low
      status = after
      if (!isSteady && reads < MAX_READS && content.sizeBytes !== after.sizeBytes) continue
      const { mode, seconds, nanos, isSparse, linkGroup } = status
      const name = latin1Bytes(found.name)
      const entry = { kind: 'file', name, mode, seconds, nanos, isSparse, linkGroup, ...content } as const
      return { entry, status }
    }
  }

  /** Opens a file whose owner may have taken its own right to read away: it is granted for the moment of opening. */
  #openClosed(folder: number, name: string): number {
    const mode = this.#options.roots[0]?.scanner.find(folder, name)?.mode
    if (mode === undefined || chmodAt(folder, cName(name), mode | 0o400) < 0) return -EACCES
    const opened = openAt(folder, cName(name), FILE_FLAGS)
    chmodAt(folder, cName(name), mode)
    return opened
  }

  /** A folder that cannot be read stays as it was saved; a new one is saved without content. */
  #skipFolder(path: string): void {
    this.#addUnreadable(path)
    const { tree, isBase } = this.#options
    const saved = tree.folder(path)
    if (saved !== undefined && !isBase) return
    const entries = saved === undefined ? [] : tree.entriesOf(saved)
    this.#scanned.push({
      high: 0,
      low: 0,
      statuses: new Int32Array(entries.length * 2),
      listing: { path, entries },
    })
  }

  #addUnreadable(path: string): void {
    this.#unreadableCount += 1
    if (this.#unreadable.length < MAX_NAMED) this.#unreadable.push(path)
  }
}

const FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK
const FILE_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY

/** True when an entry of a saved folder has this status. */
function hasStatus(saved: SavedFolder | undefined, at: number, { high, low }: FoundEntry): boolean {
  return saved?.statuses[at * 2] === high && saved.statuses[at * 2 + 1] === low
}

/**
 * True when an entry is as saved although no status of it is known: nothing has changed it since, and the kernel sets the change
 * time, which a program cannot set back. The group of a hard link is a number of the disk that it was saved from.
 */
function isUnchanged(saved: SavedFolder | undefined, entry: ManifestEntry, found: FoundEntry): boolean {
  return (
    saved?.unchangedBeforeMs !== undefined &&
    found.changedMs < saved.unchangedBeforeMs - TICK_MS &&
    found.kind === entry.kind &&
    found.mode === entry.mode &&
    found.seconds === entry.seconds &&
    found.nanos === entry.nanos &&
    (entry.kind !== 'file' || (found.sizeBytes === entry.sizeBytes && found.linkGroup === entry.linkGroup))
  )
}

function nameOf({ name }: ManifestEntry): string {
  return Buffer.from(name.buffer, name.byteOffset, name.byteLength).toString('latin1')
}

function isSameListing(a: FolderListing, b: FolderListing): boolean {
  const [numbersOfA, numbersOfB] = [new SegmentNumbers(), new SegmentNumbers()]
  const isSame = Buffer.compare(encodeFolder(a, numbersOfA), encodeFolder(b, numbersOfB)) === 0
  return isSame && numbersOfA.ids.join() === numbersOfB.ids.join()
}
