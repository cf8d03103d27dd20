import {
  BLOCK_BYTES,
  buildTree,
  checkHeader,
  type ChunkRef,
  type Compression,
  damaged,
  decodeManifest,
  type FileEntry,
  freeBytes,
  latin1Bytes,
  latin1Text,
  type ManifestEntry,
  parentOf,
  pathIn,
  readFrame,
  readTrailer,
  type SegmentId,
  type Trailer,
  type VersionTree,
} from '@sandwire/version-format'
import {
  AT_SYMLINK_NOFOLLOW,
  O_CREAT,
  O_DIRECTORY,
  O_EXCL,
  O_NOFOLLOW,
  O_RDONLY,
  O_WRONLY,
} from '../workspace/beneath/constants.ts'
import { fileError } from '../workspace/beneath/file-error.ts'
import {
  chmodFd,
  cString,
  Descriptor,
  linkAt,
  makeFolderAt,
  openAt,
  setTimeAt,
  symlinkAt,
  truncateFd,
} from '../workspace/beneath/system-calls.ts'
import { emptyFolder } from './empty-folder.ts'
import { modeOf } from './entry-stat.ts'
import { hashKey } from './saved-tree.ts'
import { chmodAt, makeFifoAt, setModified, setXattr, writeAt } from './system-calls.ts'

/** Within a block, runs of zeros of this size become holes when the file had holes. */
const PAGE_BYTES = 4096

export interface RestoreRoot {
  readonly name: string
  /** The folder; what it contains is removed. */
  readonly fd: number
}

/** Permission bits without setuid, setgid and sticky, which writing clears. */
const PLAIN_MODE = 0o777

/** A file that is being written. */
interface RestoredFile {
  readonly folder: string
  readonly entry: FileEntry
  /** Mode that it is created with. */
  readonly newMode: number
  /** Blocks that are still to come. */
  missing: number
}

/** A block of a file that a chunk has the content of. */
interface Use {
  readonly file: RestoredFile
  readonly block: number
  readonly chunk: number
}

export interface SegmentEnd {
  readonly id: SegmentId
  /** Size of the whole segment. */
  readonly sizeBytes: number
  /** Its trailer and footer. */
  readonly end: Uint8Array
}

/**
 * Replaces the content of folders by a version. First the ends of all segments are read, which have the manifests; then each segment that
 * is needed is given once, in any order. Every operation names an entry of an open folder and follows no link, so a hostile
 * manifest cannot write outside.
 */
export class Restore {
  readonly #roots: readonly RestoreRoot[]
  /** The only folder that is restored; undefined: all are. */
  readonly #only: string | undefined
  readonly #compression: Compression
  readonly #tree: VersionTree
  readonly #scannedMs: number
  readonly #trailers = new Map<SegmentId, Trailer>()
  readonly #sizes = new Map<SegmentId, number>()
  /** Where the chunks of each segment go. */
  readonly #uses = new Map<SegmentId, Use[]>()
  /** Modes that new files below a root get as requested: neither the umask nor a default ACL changes them. */
  readonly #keptModes = new Map<string, boolean>()
  /** First name of each group of hard links; the others are made at the end. */
  readonly #linked = new Map<number, { readonly folder: string; readonly entry: FileEntry }>()
  readonly #laterLinks: { readonly group: number; readonly folder: string; readonly name: Uint8Array }[] = []
  readonly #folders = new Map<string, Descriptor>()
  #files = 0
  #missing = 0

  constructor(options: {
    readonly roots: readonly RestoreRoot[]
    readonly compression: Compression
    /** All segments of the version. The first ones have its manifest, from the base to the newest part. */
    readonly ends: readonly SegmentEnd[]
    /** Number of those; further segments may have manifests of earlier versions. */
    readonly manifestCount: number
    /** Restores one root; the others stay as they are. */
    readonly only?: string
  }) {
    this.#only = options.only
    this.#roots = options.roots.filter((root) => this.#isWanted(root.name))
    this.#compression = options.compression
    const manifests = []
    for (const [at, { id, sizeBytes, end }] of options.ends.entries()) {
      const trailer = readTrailer(end, sizeBytes, options.compression)
      this.#trailers.set(id, trailer)
      this.#sizes.set(id, sizeBytes)
      if (at >= options.manifestCount) continue
      if (trailer.manifest === undefined) throw damaged('a part of its manifest is missing')
      manifests.push(decodeManifest(trailer.manifest))
    }
    this.#tree = buildTree(manifests)
    this.#scannedMs = manifests.at(-1)?.scannedMs ?? 0
  }

  /** Empties the roots, then creates folders, links and empty files. Returns the segments whose content is needed. */
  begin(): readonly SegmentId[] {
    for (const { fd, name } of this.#roots) emptyFolder(fd, name)
    for (const entry of this.#tree.get('') ?? []) {
      const name = latin1Text(entry.name)
      if (!this.#isWanted(name)) continue
      const root = this.#roots.find((each) => each.name === name)
      // A root that this sandbox does not have.
      if (root === undefined || entry.kind !== 'folder') throw damaged(`it has an unknown folder "${name}"`)
      this.#make(root.fd, name)
    }
    return [...this.#uses.keys()]
  }

  #isWanted(root: string): boolean {
    return this.#only === undefined || this.#only === root
  }

  /** True when the files on the disk are those of the version afterwards. */
  get isWhole(): boolean {
    return this.#only === undefined
  }

  /** Creates the entries of a folder, and those below it. */
  #make(fd: number, path: string): void {
    for (const entry of this.#tree.get(path) ?? []) {
      const name = cString(entry.name)
      switch (entry.kind) {
        case 'folder': {
          // Writable until its content is complete.
          this.#check(makeFolderAt(fd, name, 0o700), path)
          using inner = new Descriptor(this.#check(openAt(fd, name, FOLDER_FLAGS), path))
          this.#make(inner.fd, pathIn(path, latin1Text(entry.name)))
          break
        }
        case 'link':
          this.#check(symlinkAt(cString(entry.target), fd, name), path)
          this.#check(setTimeAt(fd, name, timeOf(entry), AT_SYMLINK_NOFOLLOW), path)
          break
        case 'fifo':
          this.#check(makeFifoAt(fd, name, 0o600), path)
          break
        case 'file':
          this.#makeFile(fd, path, entry)
          break
      }
    }
  }

  #makeFile(fd: number, folder: string, entry: FileEntry): void {
    const { name, linkGroup } = entry
    if (linkGroup !== 0) {
      const first = this.#linked.get(linkGroup)
      if (first === undefined) this.#linked.set(linkGroup, { folder, entry })
      // A save without a pause may have read the names of a file before and after it changed.
      else if (hasSameContent(first.entry, entry)) {
        this.#laterLinks.push({ group: linkGroup, folder, name })
        return
      }
    }
    // A file that is opened again, or has attributes, must be writable until it is complete.
    const isWrittenOnce = entry.blocks.length <= 1 && entry.xattrs.length === 0 && entry.mode <= PLAIN_MODE
    const file: RestoredFile = { folder, entry, newMode: isWrittenOnce ? entry.mode : 0o600, missing: 0 }
    for (const [block, ref] of entry.blocks.entries()) {
      if (ref === undefined) continue
      const uses = this.#uses.get(ref.segment)
      if (uses === undefined) this.#uses.set(ref.segment, [{ file, block, chunk: ref.chunk }])
      else uses.push({ file, block, chunk: ref.chunk })
      file.missing += 1
    }
    this.#files += 1
    if (file.missing > 0) {
      this.#missing += 1
      return
    }
    using made = new Descriptor(this.#check(openAt(fd, cString(name), NEW_FILE_FLAGS, file.newMode), folder))
    this.#complete(made.fd, file)
  }

  /** Takes one whole segment and writes its content into files. */
  addSegment(id: SegmentId, bytes: Uint8Array): void {
    const trailer = this.#trailers.get(id)
    const uses = this.#uses.get(id)
    if (trailer === undefined || bytes.byteLength !== this.#sizes.get(id))
      throw damaged('a segment has another size than stated')
    if (uses === undefined) return
    this.#uses.delete(id)
    checkHeader(bytes)
    const frameOf = ({ chunk }: Use): number => trailer.chunks[chunk]?.frame ?? -1
    // Each frame is unpacked once.
    uses.sort((a, b) => frameOf(a) - frameOf(b))
    let unpacked = -1
    let raw: Uint8Array = new Uint8Array(0)
    for (const { file, block, chunk } of uses) {
      const known = trailer.chunks[chunk]
      const frame = known === undefined ? undefined : trailer.frames[known.frame]
      if (known === undefined || frame === undefined) throw damaged('a reference names no chunk')
      if (known.frame !== unpacked) {
        const compressed = bytes.subarray(frame.start, frame.start + frame.sizeBytes)
        freeBytes(raw)
        raw = readFrame(frame, compressed, this.#compression)
        unpacked = known.frame
      }
      this.#write(file, block, raw.subarray(known.start, known.start + known.sizeBytes))
    }
    freeBytes(raw)
  }

  #write(file: RestoredFile, block: number, content: Uint8Array): void {
    const { entry, folder } = file
    const start = block * BLOCK_BYTES
    if (content.byteLength !== Math.min(BLOCK_BYTES, entry.sizeBytes - start))
      throw damaged('a block has another size than its file needs')
    const flags = O_WRONLY | O_CREAT | O_NOFOLLOW
    using target = new Descriptor(
      this.#check(openAt(this.#folder(folder), cString(entry.name), flags, file.newMode), folder),
    )
    const runs = entry.isSparse ? dataRuns(content) : [[0, content.byteLength] as const]
    for (const [from, to] of runs) this.#writeAll(target.fd, content.subarray(from, to), start + from, folder)
    file.missing -= 1
    if (file.missing > 0) return
    this.#missing -= 1
    this.#complete(target.fd, file)
  }

  #writeAll(fd: number, bytes: Uint8Array, position: number, path: string): void {
    let written = 0
    while (written < bytes.byteLength)
      written += this.#check(writeAt(fd, bytes.subarray(written), position + written), path)
  }

  /** Sets the size and attributes of a file that has all its content. */
  #complete(fd: number, file: RestoredFile): void {
    const { entry, folder } = file
    const hasHoleAtEnd = entry.isSparse || (entry.blocks.length > 0 && entry.blocks.at(-1) === undefined)
    if (hasHoleAtEnd) this.#check(truncateFd(fd, entry.sizeBytes), folder)
    for (const { name, value } of entry.xattrs) this.#check(setXattr(fd, name, value), folder)
    if (!this.#hasMode(fd, file)) this.#check(chmodFd(fd, entry.mode), folder)
    this.#check(setModified(fd, entry.seconds, entry.nanos), folder)
  }

  /** True when a file was created with its mode; the first one with each mode below a root is looked at. */
  #hasMode(fd: number, { entry: { mode }, newMode, folder }: RestoredFile): boolean {
    if (mode !== newMode) return false
    const slash = folder.indexOf('/')
    const key = `${mode} ${slash < 0 ? folder : folder.slice(0, slash)}`
    const known = this.#keptModes.get(key)
    if (known !== undefined) return known
    const isKept = modeOf(fd) === mode
    this.#keptModes.set(key, isKept)
    return isKept
  }

  /** Makes hard links, and sets modes and times of folders, the innermost first. */
  finish(): { readonly files: number; readonly folders: number } {
    if (this.#missing > 0 || this.#uses.size > 0) throw damaged('content of a file is missing')
    for (const { group, folder, name } of this.#laterLinks) {
      const first = this.#linked.get(group)
      if (first === undefined) continue
      const from = { folder: this.#folder(first.folder), name: cString(first.entry.name) }
      this.#check(linkAt(from, { folder: this.#folder(folder), name: cString(name) }, 0), folder)
    }
    for (const entry of this.#tree.get('') ?? []) {
      const root = this.#roots.find((each) => each.name === latin1Text(entry.name))
      if (root === undefined) continue
      this.#finishFolder(root.fd, root.name, entry)
    }
    this[Symbol.dispose]()
    return { files: this.#files, folders: this.#tree.size - 1 }
  }

  #finishFolder(fd: number, path: string, self: ManifestEntry): void {
    for (const entry of this.#tree.get(path) ?? []) {
      if (entry.kind === 'folder') {
        using inner = new Descriptor(this.#check(openAt(fd, cString(entry.name), FOLDER_FLAGS), path))
        this.#finishFolder(inner.fd, pathIn(path, latin1Text(entry.name)), entry)
      }
      if (entry.kind === 'fifo') {
        this.#check(chmodAt(fd, cString(entry.name), entry.mode), path)
        this.#check(setTimeAt(fd, cString(entry.name), timeOf(entry), AT_SYMLINK_NOFOLLOW), path)
      }
    }
    for (const { name, value } of self.xattrs) this.#check(setXattr(fd, name, value), path)
    this.#check(chmodFd(fd, self.mode), path)
    this.#check(setModified(fd, self.seconds, self.nanos), path)
  }

  /** The listings of the version, and where their content is stored. */
  get content(): {
    readonly tree: VersionTree
    readonly chunks: ReadonlyMap<string, ChunkRef>
    readonly contentBytes: ReadonlyMap<SegmentId, number>
    readonly scannedMs: number
  } {
    const chunks = new Map<string, ChunkRef>()
    const contentBytes = new Map<SegmentId, number>()
    for (const [segment, trailer] of this.#trailers)
      contentBytes.set(
        segment,
        trailer.chunks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      )
    for (const [segment, trailer] of this.#trailers)
      for (const [chunk, { hash }] of trailer.chunks.entries()) chunks.set(hashKey(hash), { segment, chunk })
    return { tree: this.#tree, chunks, contentBytes, scannedMs: this.#scannedMs }
  }

  [Symbol.dispose](): void {
    for (const folder of this.#folders.values()) folder[Symbol.dispose]()
    this.#folders.clear()
  }

  /** An open folder of the tree. The last few stay open: files of one folder are mostly stored together. */
  #folder(path: string): number {
    const known = this.#folders.get(path)
    if (known !== undefined) return known.fd
    const root = this.#roots.find((each) => each.name === path)
    if (root !== undefined) return root.fd
    const above = parentOf(path)
    if (above === undefined || above === '') throw damaged('a file is outside the folders of the version')
    const name = cString(latin1Bytes(path.slice(above.length + 1)))
    const opened = new Descriptor(this.#check(openAt(this.#folder(above), name, FOLDER_FLAGS), path))
    if (this.#folders.size >= MAX_OPEN_FOLDERS) this[Symbol.dispose]()
    this.#folders.set(path, opened)
    return opened.fd
  }

  #check(result: number, path: string): number {
    if (result < 0) throw fileError('restore', path, result)
    return result
  }
}

const MAX_OPEN_FOLDERS = 64
const FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
const NEW_FILE_FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW

function hasSameContent(a: FileEntry, b: FileEntry): boolean {
  return (
    a.sizeBytes === b.sizeBytes &&
    a.blocks.every((ref, at) => ref?.segment === b.blocks[at]?.segment && ref?.chunk === b.blocks[at]?.chunk)
  )
}

function timeOf({ seconds, nanos }: ManifestEntry): bigint {
  return BigInt(seconds) * 1_000_000_000n + BigInt(nanos)
}

/** Ranges of a block that are not whole pages of zeros. */
function* dataRuns(bytes: Uint8Array): Generator<readonly [from: number, to: number], void, void> {
  let from = -1
  for (let at = 0; at < bytes.byteLength; at += PAGE_BYTES) {
    const isData = bytes.subarray(at, at + PAGE_BYTES).some((byte) => byte !== 0)
    if (isData && from < 0) from = at
    if (!isData && from >= 0) {
      yield [from, at]
      from = -1
    }
  }
  if (from >= 0) yield [from, bytes.byteLength]
}
