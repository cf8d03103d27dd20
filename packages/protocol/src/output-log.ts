import type { OutputStream } from './data-frame.ts'
import { MAX_DATA_BYTES } from './limits.ts'

/** A slice of the log: bytes of one stream, at most one frame. */
export interface LogSlice {
  readonly stream: OutputStream
  /** A view of the log's memory, which is never modified. */
  readonly bytes: Uint8Array
  /** Offset after the last byte. */
  readonly end: number
}

/** A contiguous part of the output. */
interface Block {
  /** Offset of its first byte. */
  readonly start: number
  bytes: Uint8Array
  /** Bytes in use. */
  used: number
  /** Stream of its first byte. */
  readonly stream: OutputStream
  /** Positions in the block at which the stream changes. */
  readonly changes: number[]
  /** The block is a chunk of the caller, to which nothing is appended. */
  readonly isKept: boolean
}

/** Chunks from this size on are stored without copying; smaller ones are copied into one block. */
const KEEP_BYTES = 16 * 1024
/** A chunk that uses less of its buffer than this share is copied, so that the log does not retain the rest. */
const KEEP_SHARE = 0.5
/** A full block of small chunks is one frame. */
const BLOCK_BYTES = MAX_DATA_BYTES
/** Stream changes per block, which bounds the overhead when the stream changes with every byte. */
const MAX_CHANGES = 4096
/** Blocks start this large and double, so a shell prompt costs little and a flood is stored in whole frames. */
const FIRST_BLOCK_BYTES = 256
/** A block with less free space than this is full. */
const SPARE_BYTES = 8 * 1024
/** Trimmed blocks are removed from the array in batches of this many. */
const COMPACT_BLOCKS = 64
/** Replaces a trimmed block. */
const NOTHING = new Uint8Array(0)

/**
 * Output of a process, addressed by offset and bounded in bytes. Large chunks are not copied: the log stores them, and
 * readers get views of them.
 */
export class OutputLog {
  readonly #limitBytes: number
  readonly #blocks: Block[] = []
  /** Index of the first live block. */
  #head = 0
  #start = 0
  #end = 0

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  /** Offset of the oldest stored byte. */
  get start(): number {
    return this.#start
  }

  /** Offset after the newest byte. */
  get end(): number {
    return this.#end
  }

  get limitBytes(): number {
    return this.#limitBytes
  }

  /** Memory in use. */
  get allocatedBytes(): number {
    let bytes = 0
    for (const block of this.#blocks) bytes += block.bytes.buffer.byteLength + 8 * block.changes.length
    return bytes
  }

  /** Appends bytes and takes ownership of them. Does not trim. */
  append(stream: OutputStream, bytes: Uint8Array): void {
    if (bytes.byteLength >= KEEP_BYTES) {
      this.#begin(stream, compact(bytes))
      return
    }
    let taken = 0
    while (taken < bytes.byteLength) {
      const block = this.#blockWithRoom(stream, bytes.byteLength - taken)
      const piece = bytes.subarray(taken, taken + block.bytes.byteLength - block.used)
      block.bytes.set(piece, block.used)
      block.used += piece.byteLength
      this.#end += piece.byteLength
      taken += piece.byteLength
    }
  }

  /** Removes the oldest bytes until the log is within its limit, but nothing from `keepFrom` on. */
  trim(keepFrom: number): void {
    const target = Math.min(this.#end - this.#limitBytes, keepFrom)
    if (target <= this.#start) return
    this.#start = target
    let block = this.#blocks[this.#head]
    while (block !== undefined && block.start + block.used <= target) {
      // The memory is released at once; the array is compacted in batches.
      block.bytes = NOTHING
      block.changes.length = 0
      this.#head += 1
      block = this.#blocks[this.#head]
    }
    if (this.#head < COMPACT_BLOCKS) return
    this.#blocks.splice(0, this.#head)
    this.#head = 0
  }

  /** The bytes from `from` on, of one stream and at most `maxBytes` or a frame; undefined when there are none. */
  read(from: number, maxBytes: number): LogSlice | undefined {
    if (from < this.#start || from >= this.#end || maxBytes <= 0) return undefined
    const block = this.#find(from)
    if (block === undefined) return undefined
    const at = from - block.start
    const passed = countPassed(block.changes, at)
    const runEnd = block.changes[passed] ?? block.used
    const bytes = block.bytes.subarray(at, Math.min(runEnd, at + Math.min(maxBytes, MAX_DATA_BYTES)))
    return { stream: streamAfter(block.stream, passed), bytes, end: from + bytes.byteLength }
  }

  /** A block with room for at least one byte of this stream. */
  #blockWithRoom(stream: OutputStream, wanted: number): Block {
    const last = this.#head < this.#blocks.length ? this.#blocks.at(-1) : undefined
    const block = last !== undefined && hasRoom(last, wanted) ? last : this.#begin(stream, undefined)
    reserve(block, wanted)
    if (streamAfter(block.stream, block.changes.length) !== stream) block.changes.push(block.used)
    return block
  }

  /** Adds a block, either with a chunk or empty. */
  #begin(stream: OutputStream, kept: Uint8Array | undefined): Block {
    const bytes = kept ?? NOTHING
    const isKept = kept !== undefined
    const block: Block = { start: this.#end, bytes, used: bytes.byteLength, stream, changes: [], isKept }
    this.#end += bytes.byteLength
    this.#blocks.push(block)
    return block
  }

  /** Binary search over the live blocks. */
  #find(offset: number): Block | undefined {
    let low = this.#head
    let high = this.#blocks.length - 1
    while (low <= high) {
      const middle = (low + high) >> 1
      const block = this.#blocks[middle]
      if (block === undefined) return undefined
      if (offset < block.start) high = middle - 1
      else if (offset >= block.start + block.used) low = middle + 1
      else return block
    }
    return undefined
  }
}

/** True when more can be appended to a block. */
function hasRoom({ isKept, used, changes }: Block, wanted: number): boolean {
  return !isKept && changes.length < MAX_CHANGES && BLOCK_BYTES - used >= Math.min(wanted, SPARE_BYTES)
}

/** How many of the ascending positions are at or before `at`. */
function countPassed(places: readonly number[], at: number): number {
  let low = 0
  let high = places.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((places[middle] ?? 0) <= at) low = middle + 1
    else high = middle
  }
  return low
}

/** The stream after a number of changes: there are two, so they alternate. */
function streamAfter(first: OutputStream, changes: number): OutputStream {
  if (changes % 2 === 0) return first
  return first === 'stdout' ? 'stderr' : 'stdout'
}

/** Grows a block so that `wanted` more bytes fit, up to its maximum size. */
function reserve(block: Block, wanted: number): void {
  const capacity = block.bytes.byteLength
  const needed = Math.min(BLOCK_BYTES, block.used + wanted)
  if (needed <= capacity) return
  const grown = new Uint8Array(Math.min(BLOCK_BYTES, Math.max(FIRST_BLOCK_BYTES, capacity * 2, needed)))
  grown.set(block.bytes.subarray(0, block.used))
  block.bytes = grown
}

function compact(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength < bytes.buffer.byteLength * KEEP_SHARE ? bytes.slice() : bytes
}
