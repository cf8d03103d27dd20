import { ByteReader, ByteWriter, damaged } from './byte-stream.ts'
import { isSafeName, isSafePath, latin1Bytes, latin1Text } from './names.ts'

/** Content of a file larger than this is stored in blocks of this size. */
export const BLOCK_BYTES = 1024 * 1024

/** Where a piece of file content is stored: a chunk of a segment. `undefined` in a list of blocks is a block of zeros. */
export interface ChunkRef {
  /** Id of the segment. */
  readonly segment: SegmentId
  readonly chunk: number
}

/** 32 lower-case hex digits. */
export type SegmentId = string

export interface ExtendedAttribute {
  readonly name: Uint8Array
  readonly value: Uint8Array
}

interface Attributes {
  /** One path component, any bytes but NUL and slash. */
  readonly name: Uint8Array
  /** Permission bits, with setuid, setgid and sticky. */
  readonly mode: number
  /** Modification time: whole seconds, may be negative, and the nanoseconds to add. */
  readonly seconds: number
  readonly nanos: number
  readonly xattrs: readonly ExtendedAttribute[]
}

export type ManifestEntry =
  | (Attributes & {
      readonly kind: 'file'
      readonly sizeBytes: number
      /** Holes in blocks are restored as holes. */
      readonly isSparse: boolean
      /** Entries with the same number are names of one file. 0: it has one name only. */
      readonly linkGroup: number
      /** One per `BLOCK_BYTES`; a smaller file has one, an empty one none. */
      readonly blocks: readonly (ChunkRef | undefined)[]
    })
  | (Attributes & { readonly kind: 'folder' })
  | (Attributes & { readonly kind: 'link'; readonly target: Uint8Array })
  | (Attributes & { readonly kind: 'fifo' })

export type FileEntry = Extract<ManifestEntry, { kind: 'file' }>

/** All entries of one folder, sorted by the bytes of their names. */
export interface FolderListing {
  /** Components joined by slashes, one character per byte; empty for the top, which lists the saved roots. */
  readonly path: string
  readonly entries: readonly ManifestEntry[]
}

/** The folders that one version adds to its parent's, whole. A base has no parent. */
export interface ManifestPart {
  readonly isBase: boolean
  /**
   * Clock of the sandbox before its last scan of all folders, in milliseconds: a file that did not change since then is as it was
   * saved.
   */
  readonly scannedMs: number
  /** Folders of the parent that no longer exist. Folders below them are removed too. */
  readonly removed: readonly string[]
  readonly folders: readonly FolderListing[]
}

const KINDS = ['file', 'folder', 'link', 'fifo'] as const
const KIND_BITS = 0x03
const HAS_XATTRS = 0x04
const IS_SPARSE = 0x08
const HAS_LINK_GROUP = 0x10
const KNOWN_BITS = 0x1f

const MAX_XATTRS = 256
const MAX_TARGET_BYTES = 4095
const NANOS_PER_SECOND = 1_000_000_000

/** Number of blocks of a file. */
export function blockCount(sizeBytes: number): number {
  return Math.ceil(sizeBytes / BLOCK_BYTES)
}

/** Segments by number, so that a reference takes a byte or two instead of sixteen. */
export class SegmentNumbers {
  readonly ids: SegmentId[] = []
  readonly #numbers = new Map<SegmentId, number>()
  /** Most references name the same segment as the one before. */
  #last: SegmentId = ''
  #lastNumber = 0

  of(id: SegmentId): number {
    if (id === this.#last) return this.#lastNumber
    let number = this.#numbers.get(id)
    if (number === undefined) {
      number = this.ids.push(id) - 1
      this.#numbers.set(id, number)
    }
    this.#last = id
    this.#lastNumber = number
    return number
  }
}

/** Encodes one folder; it can be decoded with the ids that `numbers` has then. */
export function encodeFolder(folder: FolderListing, numbers: SegmentNumbers): Uint8Array {
  const writer = new ByteWriter()
  writer.bytes(latin1Bytes(folder.path))
  writer.number(folder.entries.length)
  for (const entry of folder.entries) writeEntry(writer, entry, numbers)
  return writer.take()
}

export function decodeFolder(bytes: Uint8Array, ids: readonly SegmentId[]): FolderListing {
  return readFolder(new ByteReader(bytes), ids)
}

export function encodeManifest(part: ManifestPart): Uint8Array {
  const numbers = new SegmentNumbers()
  const folders = part.folders.map((folder) => encodeFolder(folder, numbers))
  const writer = new ByteWriter()
  writer.byte(part.isBase ? 1 : 0)
  writer.number(part.scannedMs)
  writer.number(numbers.ids.length)
  for (const id of numbers.ids) writer.raw(Uint8Array.fromHex(id))
  writer.number(part.removed.length)
  for (const path of part.removed) writer.bytes(latin1Bytes(path))
  writer.number(folders.length)
  for (const folder of folders) writer.raw(folder)
  return writer.take()
}

function writeEntry(writer: ByteWriter, entry: ManifestEntry, numbers: SegmentNumbers): void {
  const isFile = entry.kind === 'file'
  writer.byte(
    KINDS.indexOf(entry.kind) |
      (entry.xattrs.length > 0 ? HAS_XATTRS : 0) |
      (isFile && entry.isSparse ? IS_SPARSE : 0) |
      (isFile && entry.linkGroup !== 0 ? HAS_LINK_GROUP : 0),
  )
  writer.bytes(entry.name)
  writer.number(entry.mode)
  writer.signed(entry.seconds)
  writer.number(entry.nanos)
  if (entry.xattrs.length > 0) {
    writer.number(entry.xattrs.length)
    for (const { name, value } of entry.xattrs) {
      writer.bytes(name)
      writer.bytes(value)
    }
  }
  if (entry.kind === 'link') writer.bytes(entry.target)
  if (!isFile) return
  writer.number(entry.sizeBytes)
  if (entry.linkGroup !== 0) writer.number(entry.linkGroup)
  for (const block of entry.blocks) {
    if (block === undefined) writer.byte(0)
    else {
      writer.number(numbers.of(block.segment) + 1)
      writer.number(block.chunk)
    }
  }
}

/** A manifest part whose folders are decoded one by one. */
export interface ManifestReader extends Omit<ManifestPart, 'folders'> {
  readonly segments: readonly SegmentId[]
  /** Each folder with its encoded form, for `decodeFolder`. Can be iterated once. */
  readonly folders: Iterable<{ readonly listing: FolderListing; readonly bytes: Uint8Array }>
}

/** Decodes a manifest part. Throws `version_damaged` for anything that `encodeManifest` would not write. */
export function decodeManifest(bytes: Uint8Array): ManifestPart {
  const { isBase, scannedMs, removed, folders } = readManifest(bytes)
  return { isBase, scannedMs, removed, folders: Array.from(folders, ({ listing }) => listing) }
}

/** Reads a manifest part like `decodeManifest`, without holding all its folders. */
export function readManifest(bytes: Uint8Array): ManifestReader {
  const reader = new ByteReader(bytes)
  const base = reader.byte()
  if (base > 1) throw damaged('its manifest is of an unknown kind')
  const scannedMs = reader.number()
  const ids = Array.from({ length: reader.count(16) }, () => reader.raw(16).toHex())
  const removed = Array.from({ length: reader.count(2) }, () => readPath(reader))
  return { isBase: base === 1, scannedMs, removed, segments: ids, folders: readFolders(reader, bytes, ids) }
}

function* readFolders(
  reader: ByteReader,
  bytes: Uint8Array,
  ids: readonly SegmentId[],
): Generator<{ readonly listing: FolderListing; readonly bytes: Uint8Array }, void, void> {
  const count = reader.count(2)
  for (let at = 0; at < count; at += 1) {
    const start = reader.position
    const listing = readFolder(reader, ids)
    yield { listing, bytes: bytes.subarray(start, reader.position) }
  }
  if (!reader.isAtEnd) throw damaged('its manifest has extra bytes')
}

function readPath(reader: ByteReader): string {
  const path = latin1Text(reader.bytes())
  if (!isSafePath(path)) throw damaged('a path is not allowed')
  return path
}

function readFolder(reader: ByteReader, ids: readonly SegmentId[]): FolderListing {
  const path = readPath(reader)
  const entries = Array.from({ length: reader.count(6) }, () => readEntry(reader, ids))
  for (const [at, entry] of entries.entries()) {
    const before = entries[at - 1]
    if (before !== undefined && compareBytes(before.name, entry.name) >= 0)
      throw damaged('the names of a folder are not in order')
  }
  return { path, entries }
}

function readEntry(reader: ByteReader, ids: readonly SegmentId[]): ManifestEntry {
  const bits = reader.byte()
  const kind = KINDS[bits & KIND_BITS]
  if (kind === undefined || (bits & ~KNOWN_BITS) !== 0) throw damaged('an entry is of an unknown kind')
  if (kind !== 'file' && (bits & (IS_SPARSE | HAS_LINK_GROUP)) !== 0)
    throw damaged('an entry is of an unknown kind')
  const name = reader.bytes()
  if (!isSafeName(name)) throw damaged('a name is not allowed')
  const mode = reader.number()
  const seconds = reader.signed()
  const nanos = reader.number()
  if (mode > 0o7777 || nanos >= NANOS_PER_SECOND) throw damaged('a mode or time is out of range')
  const xattrs = (bits & HAS_XATTRS) === 0 ? [] : readXattrs(reader)
  const attributes = { name, mode, seconds, nanos, xattrs }
  switch (kind) {
    case 'folder':
    case 'fifo':
      return { kind, ...attributes }
    case 'link':
      return { kind, ...attributes, target: readTarget(reader) }
    case 'file':
      break
  }
  const sizeBytes = reader.number()
  const linkGroup = (bits & HAS_LINK_GROUP) === 0 ? 0 : reader.number()
  const count = blockCount(sizeBytes)
  const blocks: (ChunkRef | undefined)[] = []
  for (let at = 0; at < count; at += 1) blocks.push(readBlock(reader, ids))
  return { kind, ...attributes, sizeBytes, isSparse: (bits & IS_SPARSE) !== 0, linkGroup, blocks }
}

function readXattrs(reader: ByteReader): readonly ExtendedAttribute[] {
  const count = reader.count(2)
  if (count === 0 || count > MAX_XATTRS) throw damaged('an entry has too many extended attributes')
  return Array.from({ length: count }, () => {
    const name = reader.bytes()
    if (name.length === 0 || name.includes(0)) throw damaged('an extended attribute has no valid name')
    return { name, value: reader.bytes() }
  })
}

function readTarget(reader: ByteReader): Uint8Array {
  const target = reader.bytes()
  if (target.length === 0 || target.length > MAX_TARGET_BYTES || target.includes(0))
    throw damaged('a symlink has no valid target')
  return target
}

function readBlock(reader: ByteReader, ids: readonly SegmentId[]): ChunkRef | undefined {
  const number = reader.number()
  if (number === 0) return undefined
  const segment = ids[number - 1]
  if (segment === undefined) throw damaged('a reference names no segment')
  return { segment, chunk: reader.number() }
}

export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at += 1) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}
