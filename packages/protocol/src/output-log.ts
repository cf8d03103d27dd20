import { type OutputStream, STREAM } from './data-frame.ts'
import { MAX_DATA_BYTES } from './limits.ts'

/** A piece of the log that is ready to be sent. */
export interface LogSlice {
  /** A whole data frame: the stream's byte, then the payload. Never modified afterwards. */
  readonly frame: Uint8Array
  /** Offset behind the payload. */
  readonly end: number
}

/** Bytes of one stream in a row, kept as the frame they are sent as. */
interface Chunk {
  readonly stream: OutputStream
  /** Offset of the first payload byte. */
  readonly start: number
  /** Stream byte and payload; room behind `length` is spare. */
  frame: Uint8Array
  /** Payload bytes in use. */
  length: number
}

/** Chunks start this large and double, so a shell prompt costs little and a flood is stored in whole frames. */
const FIRST_CHUNK_BYTES = 256
/** Dead chunks at the front are dropped from the array in batches of this many. */
const COMPACT_CHUNKS = 64

/**
 * Output of a process, addressed by offset and bounded in bytes.
 * Payload is copied once, into the frame it will be sent as; every reader shares that frame.
 */
export class OutputLog {
  readonly #limitBytes: number
  readonly #chunks: Chunk[] = []
  /** Index of the first live chunk. */
  #head = 0
  #start = 0
  #end = 0

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  /** Offset of the oldest byte still held. */
  get start(): number {
    return this.#start
  }

  /** Offset behind the newest byte. */
  get end(): number {
    return this.#end
  }

  get limitBytes(): number {
    return this.#limitBytes
  }

  /** Adds bytes at the end. Does not trim: the owner decides what may go. */
  append(stream: OutputStream, bytes: Uint8Array): void {
    let taken = 0
    while (taken < bytes.byteLength) {
      const chunk = this.#chunkWithRoom(stream, bytes.byteLength - taken)
      const room = chunk.frame.byteLength - 1 - chunk.length
      const piece = bytes.subarray(taken, taken + room)
      chunk.frame.set(piece, 1 + chunk.length)
      chunk.length += piece.byteLength
      this.#end += piece.byteLength
      taken += piece.byteLength
    }
  }

  /** Drops the oldest bytes until the log is within its bound, but nothing at or behind `keepFrom`. */
  trim(keepFrom: number): void {
    const target = Math.min(this.#end - this.#limitBytes, keepFrom)
    if (target <= this.#start) return
    this.#start = target
    let chunk = this.#chunks[this.#head]
    while (chunk !== undefined && chunk.start + chunk.length <= target) {
      this.#head += 1
      chunk = this.#chunks[this.#head]
    }
    if (this.#head < COMPACT_CHUNKS) return
    this.#chunks.splice(0, this.#head)
    this.#head = 0
  }

  /** The frame that continues at `from` with at most `maxBytes` of payload, or `undefined` when there is none. */
  read(from: number, maxBytes: number): LogSlice | undefined {
    if (from < this.#start || from >= this.#end || maxBytes <= 0) return undefined
    const chunk = this.#find(from)
    if (chunk === undefined) return undefined
    const skip = from - chunk.start
    const length = Math.min(chunk.length - skip, maxBytes, MAX_DATA_BYTES)
    if (skip === 0) return { frame: chunk.frame.subarray(0, 1 + length), end: from + length }
    const frame = new Uint8Array(1 + length)
    frame[0] = STREAM[chunk.stream]
    frame.set(chunk.frame.subarray(1 + skip, 1 + skip + length), 1)
    return { frame, end: from + length }
  }

  #chunkWithRoom(stream: OutputStream, wanted: number): Chunk {
    const last = this.#chunks.at(-1)
    const live = this.#head < this.#chunks.length ? last : undefined
    if (live !== undefined && live.stream === stream && live.length < MAX_DATA_BYTES) {
      const capacity = live.frame.byteLength - 1
      if (live.length < capacity) return live
      const grown = new Uint8Array(1 + Math.min(MAX_DATA_BYTES, Math.max(capacity * 2, live.length + wanted)))
      grown.set(live.frame)
      live.frame = grown
      return live
    }
    const capacity = Math.min(MAX_DATA_BYTES, Math.max(FIRST_CHUNK_BYTES, wanted))
    const frame = new Uint8Array(1 + capacity)
    frame[0] = STREAM[stream]
    const chunk: Chunk = { stream, start: this.#end, frame, length: 0 }
    this.#chunks.push(chunk)
    return chunk
  }

  /** Binary search over the live chunks. */
  #find(offset: number): Chunk | undefined {
    let low = this.#head
    let high = this.#chunks.length - 1
    while (low <= high) {
      const middle = (low + high) >> 1
      const chunk = this.#chunks[middle]
      if (chunk === undefined) return undefined
      if (offset < chunk.start) high = middle - 1
      else if (offset >= chunk.start + chunk.length) low = middle + 1
      else return chunk
    }
    return undefined
  }
}
