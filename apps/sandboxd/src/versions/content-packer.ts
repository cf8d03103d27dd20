import {
  BLOCK_BYTES,
  type BuiltSegment,
  type ChunkRef,
  type Compression,
  type FileEntry,
  HASH_BYTES,
  SegmentBuilder,
  type SegmentId,
} from '@sandwire/version-format'
import { Descriptor, readFd } from '../workspace/beneath/system-calls.ts'
import type { ContentArena } from './content-arena.ts'
import type { FoundEntry } from './scan.ts'
import type { SavedTree } from './saved-tree.ts'
import { nextData, readXattrs, seekTo } from './system-calls.ts'

/** Content that was read and is not yet packed. Packing takes longer than reading, and processes may be stopped meanwhile. */
const MAX_UNPACKED_BYTES = 32 * 1024 * 1024
/** A larger file, which only holes make possible, is not saved: a hole still takes a byte per block. */
const MAX_FILE_BYTES = 1024 ** 4

type Segments<Result> = Generator<BuiltSegment, Result, void>

type FileContent = Pick<FileEntry, 'xattrs' | 'sizeBytes' | 'blocks'>

/** A block of content that waits to be packed. */
interface PendingBlock {
  readonly bytes: Uint8Array
  /** The blocks of its file, and its number among them. */
  readonly blocks: (ChunkRef | undefined)[]
  readonly at: number
}

export interface PackerOptions {
  readonly tree: SavedTree
  readonly compression: Compression
  /** Where content waits to be packed. */
  readonly arena: ContentArena
  readonly segmentId: (number: number) => SegmentId
  /** Segments whose content is stored again. */
  readonly replaced: ReadonlySet<SegmentId>
}

/** Reads the content of files and packs what is not stored yet into segments. */
export class ContentPacker {
  readonly #options: PackerOptions
  /** New chunks by hash. */
  readonly chunks = new Map<string, ChunkRef>()
  /** Bytes of content in each new segment. */
  readonly contentBytes = new Map<SegmentId, number>()
  /** Number of segments. */
  made = 0
  #builder: SegmentBuilder
  /** Id of the segment that is being built, and the content in it. */
  #segment: SegmentId
  #segmentBytes = 0
  #pending: PendingBlock[] = []
  #pendingBytes = 0

  constructor(options: PackerOptions) {
    this.#options = options
    this.#builder = new SegmentBuilder(options.compression)
    this.#segment = options.segmentId(0)
  }

  /** The last segment of the save. */
  finish(last: { readonly manifest: Uint8Array; readonly record: Uint8Array }): BuiltSegment {
    this.made += 1
    return this.#builder.finish(last)
  }

  /** True when `pack` must run before more is read. */
  get isFull(): boolean {
    return this.#pendingBytes + BLOCK_BYTES > MAX_UNPACKED_BYTES
  }

  /**
   * Reads an open file of less than a block, which stays open; undefined when it has another size than stated. Almost every file is
   * one: what `read` takes for each file besides the system calls would be half of the time of a first save.
   */
  readSmall(fd: number, sizeBytes: number): FileContent | undefined {
    const { arena } = this.#options
    const free = arena.free(BLOCK_BYTES)
    if (readFd(fd, free) !== sizeBytes) return undefined
    arena.use(sizeBytes)
    const blocks: (ChunkRef | undefined)[] = []
    if (sizeBytes > 0) this.#add(free.subarray(0, sizeBytes), blocks)
    return { xattrs: readXattrs(fd), sizeBytes, blocks }
  }

  /** Reads an open file and closes it; undefined when that fails. Yields segments that became full. */
  *read(
    fd: number,
    { isSparse, sizeBytes: statedBytes }: Pick<FoundEntry, 'isSparse' | 'sizeBytes'>,
  ): Segments<FileContent | undefined> {
    using file = new Descriptor(fd)
    if (statedBytes > MAX_FILE_BYTES) return undefined
    const blocks: (ChunkRef | undefined)[] = []
    let sizeBytes = 0
    for (;;) {
      if (isSparse) {
        const holes = Math.floor((nextData(file.fd, sizeBytes, statedBytes) - sizeBytes) / BLOCK_BYTES)
        sizeBytes += holes * BLOCK_BYTES
        for (let left = holes; left > 0; left -= 1) blocks.push(undefined)
        if (holes > 0 && seekTo(file.fd, sizeBytes) < 0) return undefined
      }
      const bytes = this.#readBlock(file.fd)
      if (bytes === undefined) return undefined
      if (bytes.byteLength === 0) break
      sizeBytes += bytes.byteLength
      this.#add(bytes, blocks)
      if (this.isFull) yield* this.pack()
      // A short read of a file is its end.
      if (bytes.byteLength < BLOCK_BYTES) break
    }
    return { xattrs: readXattrs(file.fd), sizeBytes, blocks }
  }

  /** Adds the next block of a file. */
  #add(bytes: Uint8Array, blocks: (ChunkRef | undefined)[]): void {
    const at = blocks.push(undefined) - 1
    if (isZero(bytes)) return
    this.#pending.push({ bytes, blocks, at })
    this.#pendingBytes += bytes.byteLength
  }

  /** Reads the next block into the arena. */
  #readBlock(fd: number): Uint8Array | undefined {
    const { arena } = this.#options
    const free = arena.free(BLOCK_BYTES)
    const size = readFd(fd, free)
    if (size < 0) return undefined
    arena.use(size)
    return free.subarray(0, size)
  }

  /** Packs what was read; yields every segment that is full. */
  *pack(): Segments<void> {
    const { tree, segmentId, replaced, compression, arena } = this.#options
    const pending = this.#pending
    this.#pending = []
    this.#pendingBytes = 0
    arena.clear()
    for (const { bytes, blocks, at } of pending) {
      Bun.SHA256.hash(bytes, digest)
      const key = digest.toString('latin1', 0, HASH_BYTES)
      const saved = tree.findChunk(key)
      const known =
        this.chunks.get(key) ?? (saved === undefined || replaced.has(saved.segment) ? undefined : saved)
      if (known !== undefined) {
        blocks[at] = known
        continue
      }
      const ref = { segment: this.#segment, chunk: this.#builder.add(bytes, hash) }
      this.#segmentBytes += bytes.byteLength
      this.contentBytes.set(ref.segment, this.#segmentBytes)
      this.chunks.set(key, ref)
      blocks[at] = ref
      if (!this.#builder.isFull) continue
      this.made += 1
      yield this.#builder.finish()
      this.#builder = new SegmentBuilder(compression)
      this.#segment = segmentId(this.made)
      this.#segmentBytes = 0
    }
  }
}

const digest = Buffer.alloc(32)
/** The part of it that is stored. */
const hash = digest.subarray(0, HASH_BYTES)

const ZEROS = new Uint8Array(BLOCK_BYTES)

function isZero(bytes: Uint8Array): boolean {
  return bytes[0] === 0 && Buffer.compare(bytes, ZEROS.subarray(0, bytes.byteLength)) === 0
}
