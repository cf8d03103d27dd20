import { SandwireError } from '@sandwire/protocol'
import { ByteReader, ByteWriter, damaged } from './byte-stream.ts'
import { freeBytes } from './free-bytes.ts'

/**
 * A segment is an immutable object of the store:
 *
 *   header   8 bytes: "SWSEG", format, encryption (0: none; others are reserved), 0
 *   frames   compressed, each with one or more chunks of file content
 *   trailer  compressed, with a checksum: table of frames, table of chunks, manifest part, version record
 *   footer   16 bytes: size of the trailer, its size uncompressed (little-endian), "SWSEGEND"
 *
 * The trailer can be read alone, from the end. The content of a chunk is checked by its hash or, with the whole segment, by its SHA-256.
 */
const HEADER = Uint8Array.of(0x53, 0x57, 0x53, 0x45, 0x47, 1, 0, 0)
const FOOTER_MARK = Uint8Array.of(0x53, 0x57, 0x53, 0x45, 0x47, 0x45, 0x4e, 0x44)
const FOOTER_BYTES = 16

/** A segment is closed when its frames reach this size; one more frame of incompressible bytes still fits 8 MiB. */
const FULL_BYTES = 7 * 1024 * 1024
/** Bounds the table of a segment with tiny files. */
export const MAX_CHUNKS = 65_536
/** Small chunks share frames of about this size: better compression, and a single file is read by unpacking little. */
const FRAME_BYTES = 1024 * 1024
/** Largest content of a frame: a chunk is at most a block. */
const MAX_FRAME_BYTES = 2 * FRAME_BYTES
/** Enough for the manifest of about a million files. */
const MAX_TRAILER_BYTES = 128 * 1024 * 1024
/** Leading bytes of the SHA-256 of a chunk. */
export const HASH_BYTES = 16

/** Zstandard, from the runtime. */
export interface Compression {
  readonly compress: (bytes: Uint8Array) => Uint8Array
  /** The same with a checksum of the content, which `decompress` checks. */
  readonly compressChecked: (bytes: Uint8Array) => Uint8Array
  /** Throws when the result would not have exactly this size. */
  readonly decompress: (bytes: Uint8Array, sizeBytes: number) => Uint8Array
}

/** What readers need. */
export type Decompression = Pick<Compression, 'decompress'>

export interface Frame {
  /** Position in the segment. */
  readonly start: number
  readonly sizeBytes: number
  readonly rawBytes: number
}

export interface Chunk {
  readonly frame: number
  /** Position in the uncompressed frame. */
  readonly start: number
  readonly sizeBytes: number
  readonly hash: Uint8Array
}

export interface Trailer {
  readonly frames: readonly Frame[]
  readonly chunks: readonly Chunk[]
  /** Encoded manifest part; only the last segment of a version has one. */
  readonly manifest: Uint8Array | undefined
  /** The version that the segment completes, as control wrote it; only the last segment has one. */
  readonly record: Uint8Array | undefined
}

export interface BuiltSegment {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Trailer and footer: what a reader fetches from the end. */
  readonly trailerBytes: number
}

/** Builds one segment. */
export class SegmentBuilder {
  readonly #compression: Compression
  /** Compressed frames. */
  readonly #parts: Uint8Array[] = []
  readonly #frames: Frame[] = []
  /** The table of chunks as it is stored: an object for each would take longer than the rest of its work. */
  readonly #chunks = new ByteWriter()
  #chunkCount = 0
  #size = HEADER.byteLength
  #frame = new Uint8Array(FRAME_BYTES)
  #framed = 0

  constructor(compression: Compression) {
    this.#compression = compression
  }

  /** True when no further chunk should be added. */
  get isFull(): boolean {
    return this.#size >= FULL_BYTES || this.#chunkCount >= MAX_CHUNKS
  }

  /** Adds a chunk of at most one block, with the first bytes of its SHA-256; returns its number. */
  add(bytes: Uint8Array, hash: Uint8Array): number {
    if (this.#framed + bytes.byteLength > FRAME_BYTES) this.#closeFrame()
    this.#chunks.number(this.#frames.length)
    this.#chunks.number(this.#framed)
    this.#chunks.number(bytes.byteLength)
    this.#chunks.raw(hash)
    this.#chunkCount += 1
    if (bytes.byteLength === FRAME_BYTES) {
      // A whole frame needs no copy.
      this.#addFrame(bytes)
    } else {
      this.#frame.set(bytes, this.#framed)
      this.#framed += bytes.byteLength
      if (this.#framed === FRAME_BYTES) this.#closeFrame()
    }
    return this.#chunkCount - 1
  }

  finish(last?: { readonly manifest: Uint8Array; readonly record: Uint8Array }): BuiltSegment {
    this.#closeFrame()
    const raw = this.#encodeTrailer(last)
    const trailer = this.#compression.compressChecked(raw)
    const footer = new Uint8Array(FOOTER_BYTES)
    const view = new DataView(footer.buffer)
    view.setUint32(0, trailer.byteLength, true)
    view.setUint32(4, raw.byteLength, true)
    footer.set(FOOTER_MARK, 8)
    const trailerBytes = trailer.byteLength + FOOTER_BYTES
    const bytes = new Uint8Array(this.#size + trailerBytes)
    bytes.set(HEADER)
    let at = HEADER.byteLength
    for (const part of [...this.#parts.splice(0), trailer, footer]) {
      bytes.set(part, at)
      at += part.byteLength
      freeBytes(part)
    }
    freeBytes(this.#frame)
    return { bytes, trailerBytes }
  }

  #encodeTrailer(
    last: { readonly manifest: Uint8Array; readonly record: Uint8Array } | undefined,
  ): Uint8Array {
    const writer = new ByteWriter()
    writer.byte(last === undefined ? 0 : HAS_MANIFEST | HAS_RECORD)
    writer.number(this.#frames.length)
    for (const frame of this.#frames) {
      writer.number(frame.sizeBytes)
      writer.number(frame.rawBytes)
    }
    writer.number(this.#chunkCount)
    writer.raw(this.#chunks.take())
    if (last !== undefined) {
      writer.bytes(last.manifest)
      writer.bytes(last.record)
    }
    return writer.take()
  }

  #closeFrame(): void {
    if (this.#framed === 0) return
    this.#addFrame(this.#frame.subarray(0, this.#framed))
    this.#framed = 0
  }

  #addFrame(content: Uint8Array): void {
    const compressed = this.#compression.compress(content)
    this.#frames.push({ start: this.#size, sizeBytes: compressed.byteLength, rawBytes: content.byteLength })
    this.#parts.push(compressed)
    this.#size += compressed.byteLength
  }
}

const HAS_MANIFEST = 0x01
const HAS_RECORD = 0x02

/** How many bytes from the end of a segment have its trailer and footer, from its last 16 bytes. */
export function trailerSize(footer: Uint8Array): number {
  return readFooter(footer).sizeBytes + FOOTER_BYTES
}

function readFooter(footer: Uint8Array): { readonly sizeBytes: number; readonly rawBytes: number } {
  const end = footer.subarray(Math.max(0, footer.byteLength - FOOTER_BYTES))
  if (end.byteLength < FOOTER_BYTES) throw damaged('a segment is too short')
  if (FOOTER_MARK.some((byte, at) => end[8 + at] !== byte)) throw damaged('a segment has no end mark')
  const view = new DataView(end.buffer, end.byteOffset, end.byteLength)
  const rawBytes = view.getUint32(4, true)
  if (rawBytes > MAX_TRAILER_BYTES) throw damaged('the table of a segment is too large')
  return { sizeBytes: view.getUint32(0, true), rawBytes }
}

/**
 * Reads the trailer of a segment. `end` is the end of the segment, with at least the trailer and footer; `segmentBytes` is the
 * size of the whole segment. Every number is checked against it. Throws `version_damaged`, and `file_too_large` when the trailer
 * would unpack to more than `maxRawBytes`.
 */
export function readTrailer(
  end: Uint8Array,
  segmentBytes: number,
  compression: Decompression,
  maxRawBytes = MAX_TRAILER_BYTES,
): Trailer {
  const { sizeBytes, rawBytes } = readFooter(end)
  if (rawBytes > maxRawBytes)
    throw new SandwireError('file_too_large', 'Cannot read the version: it has too many files')
  const from = end.byteLength - FOOTER_BYTES - sizeBytes
  const framesEnd = segmentBytes - FOOTER_BYTES - sizeBytes
  if (from < 0 || framesEnd < HEADER.byteLength) throw damaged('the table of a segment is too large')
  const raw = decompress(compression, end.subarray(from, from + sizeBytes), rawBytes)
  const reader = new ByteReader(raw)
  const bits = reader.byte()
  if (bits > (HAS_MANIFEST | HAS_RECORD)) throw damaged('a segment is of an unknown kind')
  const frames = readFrames(reader, framesEnd)
  const chunks = readChunks(reader, frames)
  const manifest = (bits & HAS_MANIFEST) === 0 ? undefined : reader.bytes()
  const record = (bits & HAS_RECORD) === 0 ? undefined : reader.bytes()
  if (!reader.isAtEnd) throw damaged('the table of a segment has extra bytes')
  return { frames, chunks, manifest, record }
}

function readFrames(reader: ByteReader, framesEnd: number): readonly Frame[] {
  let start = HEADER.byteLength
  const frames = Array.from({ length: reader.count(2) }, () => {
    const frame = { start, sizeBytes: reader.number(), rawBytes: reader.number() }
    start += frame.sizeBytes
    if (start > framesEnd || frame.rawBytes > MAX_FRAME_BYTES) throw damaged('a frame is out of range')
    return frame
  })
  if (start !== framesEnd) throw damaged('its frames do not fill the segment')
  return frames
}

function readChunks(reader: ByteReader, frames: readonly Frame[]): readonly Chunk[] {
  return Array.from({ length: reader.count(3 + HASH_BYTES) }, () => {
    const chunk = {
      frame: reader.number(),
      start: reader.number(),
      sizeBytes: reader.number(),
      hash: reader.raw(HASH_BYTES),
    }
    const frame = frames[chunk.frame]
    if (frame === undefined || chunk.start + chunk.sizeBytes > frame.rawBytes)
      throw damaged('a chunk is out of range')
    return chunk
  })
}

/** Checks the first bytes of a segment: its format is known and it is not encrypted. */
export function checkHeader(start: Uint8Array): void {
  if (HEADER.some((byte, at) => start[at] !== byte)) throw damaged('a segment has an unknown format')
}

/** Unpacks one frame; `compressed` has the bytes at its position. */
export function readFrame(frame: Frame, compressed: Uint8Array, compression: Decompression): Uint8Array {
  return decompress(compression, compressed, frame.rawBytes)
}

function decompress(compression: Decompression, bytes: Uint8Array, sizeBytes: number): Uint8Array {
  let raw: Uint8Array
  try {
    raw = compression.decompress(bytes, sizeBytes)
  } catch {
    throw damaged('a part of it cannot be unpacked')
  }
  if (raw.byteLength !== sizeBytes) throw damaged('a part of it has another size than stated')
  return raw
}
