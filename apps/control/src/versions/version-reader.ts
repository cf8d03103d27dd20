import { SandwireError } from '@sandwire/protocol'
import {
  BLOCK_BYTES,
  type ChunkRef,
  damaged,
  type Decompression,
  type FileEntry,
  FolderIndex,
  HASH_BYTES,
  readFrame,
  readTrailer,
  type SegmentId,
  type Trailer,
} from '@sandwire/version-format'
import { readToEnd } from '../http/read-bounded.ts'
import type { Charge } from './read-budget.ts'
import { segmentKey, type SegmentStore } from './segment-store.ts'
import type { SegmentRow, VersionContent } from './version-store.ts'

/** Manifests of about 200,000 files, unpacked. Control has 128 MB of memory for everything. */
const MAX_MANIFEST_BYTES = 16 * 1024 * 1024
/** Largest file that can be read from a version. */
const MAX_FILE_BYTES = 64 * 1024 * 1024
/** Tables of segments that stay in memory while a file is read. */
const MAX_TRAILERS = 4
/** Larger than any frame of content, packed. */
const MAX_FRAME_BYTES = 2 * 1024 * 1024 + 4096

/** A block or a table, from a slow store. */
const READ_TIMEOUT_MS = 60_000

/** Reads folders and single files of a version from the store, without a sandbox. */
export class VersionReader {
  readonly #store: SegmentStore
  readonly #compression: Decompression
  readonly #content: VersionContent
  readonly #charge: Charge
  readonly #rows: ReadonlyMap<SegmentId, SegmentRow>
  readonly #trailers = new Map<SegmentId, Trailer>()

  /** `charge` is called with the bytes of what is unpacked and parsed. */
  constructor(
    store: SegmentStore,
    compression: Decompression,
    content: VersionContent,
    charge: Charge = () => undefined,
  ) {
    this.#store = store
    this.#compression = compression
    this.#content = content
    this.#charge = charge
    this.#rows = new Map(content.segments.map((row) => [row.id, row]))
  }

  /** The folders; throws `file_too_large` when there are too many for control. */
  async index(): Promise<FolderIndex> {
    const manifests: Uint8Array[] = []
    let free = MAX_MANIFEST_BYTES
    for (const id of this.#content.version.manifests) {
      const { manifest } = await this.#readTrailer(id, free)
      if (manifest === undefined) throw damaged('a manifest is missing')
      free -= manifest.byteLength
      manifests.push(manifest)
    }
    return new FolderIndex(manifests)
  }

  /** The content of a file, a block at a time; every block is checked against its hash. */
  async *blocks({ sizeBytes, blocks }: FileEntry): AsyncGenerator<Uint8Array, void, void> {
    if (sizeBytes > MAX_FILE_BYTES)
      throw new SandwireError('file_too_large', 'Cannot read the file: it is larger than 64 MiB')
    for (const [at, ref] of blocks.entries()) {
      const blockBytes = Math.min(BLOCK_BYTES, sizeBytes - at * BLOCK_BYTES)
      const bytes = ref === undefined ? new Uint8Array(blockBytes) : await this.#readChunk(ref)
      if (bytes.byteLength !== blockBytes) throw damaged('a block has another size than its file needs')
      yield bytes
    }
  }

  async #readChunk({ segment, chunk: number }: ChunkRef): Promise<Uint8Array> {
    const trailer = await this.#trailer(segment)
    const chunk = trailer.chunks[number]
    const frame = chunk === undefined ? undefined : trailer.frames[chunk.frame]
    if (chunk === undefined || frame === undefined) throw damaged('a reference names no chunk')
    if (frame.sizeBytes > MAX_FRAME_BYTES) throw damaged('a frame is out of range')
    const packed = await this.#read(segment, frame.start, frame.start + frame.sizeBytes)
    const raw = readFrame(frame, packed, this.#compression)
    const bytes = raw.slice(chunk.start, chunk.start + chunk.sizeBytes)
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)).subarray(0, HASH_BYTES)
    if (digest.some((byte, at) => chunk.hash[at] !== byte)) throw damaged('a block has the wrong checksum')
    return bytes
  }

  async #trailer(id: SegmentId): Promise<Trailer> {
    const known = this.#trailers.get(id)
    if (known !== undefined) return known
    const trailer = await this.#readTrailer(id, MAX_MANIFEST_BYTES)
    const [oldest] = this.#trailers.keys()
    if (oldest !== undefined && this.#trailers.size >= MAX_TRAILERS) this.#trailers.delete(oldest)
    this.#trailers.set(id, trailer)
    return trailer
  }

  async #readTrailer(id: SegmentId, maxRawBytes: number): Promise<Trailer> {
    const { sizeBytes, trailerBytes } = this.#row(id)
    if (trailerBytes > maxRawBytes)
      throw new SandwireError('file_too_large', 'Cannot read the version: it has too many files')
    const end = await this.#read(id, sizeBytes - trailerBytes, sizeBytes)
    const trailer = readTrailer(end, sizeBytes, this.#compression, maxRawBytes)
    this.#charge(trailerBytes + (trailer.manifest?.byteLength ?? 0))
    return trailer
  }

  async #read(id: SegmentId, start: number, end: number): Promise<Uint8Array> {
    const body = await this.#store.get(segmentKey(this.#row(id).lineage, id), { start, end })
    if (body === undefined) throw damaged('a segment is missing')
    const read = await readToEnd(body, end - start, AbortSignal.timeout(READ_TIMEOUT_MS))
    if (read.kind !== 'whole' || read.bytes.byteLength !== end - start)
      throw damaged('a segment cannot be read')
    return new Uint8Array(read.bytes)
  }

  #row(id: SegmentId): SegmentRow {
    const row = this.#rows.get(id)
    if (row === undefined) throw damaged('a reference names no segment')
    return row
  }
}
