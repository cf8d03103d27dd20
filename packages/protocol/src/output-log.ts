import { type OutputStream, STREAM } from './data-frame.ts'
import { MAX_DATA_BYTES } from './limits.ts'

/** A piece of the log that is ready to be sent. */
export interface LogSlice {
  /** A whole data frame: the stream's byte, then the payload. Never modified afterwards. */
  readonly frame: Uint8Array
  /** Offset behind the payload. */
  readonly end: number
}

/** Runs of output, each stored as the frame it is sent as: the stream's byte, then its payload. */
interface Block {
  /** Offset of the first payload byte. */
  readonly start: number
  bytes: Uint8Array
  /** Bytes in use; what is behind them is spare. */
  used: number
  /** Where each run begins in `bytes`. Every run adds one byte, so run `r` starts at offset `start + runs[r] - r`. */
  readonly runs: number[]
}

/** A full block is one whole frame; a stream that changes every byte costs ten times its size, not hundreds. */
const BLOCK_BYTES = 1 + MAX_DATA_BYTES
/** Blocks start this large and double, so a shell prompt costs little and a flood is stored in whole frames. */
const FIRST_BLOCK_BYTES = 256
/** Output that comes in such pieces is a flood: its blocks are made full at once instead of growing by copies. */
const FLOOD_BYTES = 16 * 1024
/** A piece of this size begins a run, so that it is sent as it is stored; smaller ones join the run before. */
const RUN_BYTES = 1024
/** Less room than this at the end of a block is not worth a frame of its own. */
const SPARE_BYTES = 8 * 1024
/** Dead blocks at the front are dropped from the array in batches of this many. */
const COMPACT_BLOCKS = 64
/** Stands in for a block that is gone. */
const NOTHING = new Uint8Array(0)

/**
 * Output of a process, addressed by offset and bounded in bytes.
 * Payload is copied once, into the frame it will be sent as; every reader shares that frame.
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

  /** Memory in use for payload and its frames. */
  get allocatedBytes(): number {
    let bytes = 0
    for (const block of this.#blocks) bytes += block.bytes.byteLength + 8 * block.runs.length
    return bytes
  }

  /** Adds bytes at the end. Does not trim: the owner decides what may go. */
  append(stream: OutputStream, bytes: Uint8Array): void {
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

  /** Drops the oldest bytes until the log is within its bound, but nothing at or behind `keepFrom`. */
  trim(keepFrom: number): void {
    const target = Math.min(this.#end - this.#limitBytes, keepFrom)
    if (target <= this.#start) return
    this.#start = target
    let block = this.#blocks[this.#head]
    while (block !== undefined && endOf(block) <= target) {
      // The array is compacted in batches, the memory goes at once.
      block.bytes = NOTHING
      block.runs.length = 0
      this.#head += 1
      block = this.#blocks[this.#head]
    }
    if (this.#head < COMPACT_BLOCKS) return
    this.#blocks.splice(0, this.#head)
    this.#head = 0
  }

  /** The frame that continues at `from` with at most `maxBytes` of payload, or `undefined` when there is none. */
  read(from: number, maxBytes: number): LogSlice | undefined {
    if (from < this.#start || from >= this.#end || maxBytes <= 0) return undefined
    const block = this.#find(from)
    if (block === undefined) return undefined
    const run = findRun(block, from - block.start)
    const at = block.runs[run] ?? 0
    const skip = from - block.start - (at - run)
    const length = Math.min((block.runs[run + 1] ?? block.used) - at - 1 - skip, maxBytes)
    if (skip === 0) return { frame: block.bytes.subarray(at, at + 1 + length), end: from + length }
    const frame = new Uint8Array(1 + length)
    frame[0] = block.bytes[at] ?? 0
    frame.set(block.bytes.subarray(at + 1 + skip, at + 1 + skip + length), 1)
    return { frame, end: from + length }
  }

  /** The block to append to, in a run of this stream, with room for at least one byte. */
  #blockWithRoom(stream: OutputStream, wanted: number): Block {
    const last = this.#head < this.#blocks.length ? this.#blocks.at(-1) : undefined
    if (last !== undefined) {
      const isNewRun = wanted >= RUN_BYTES || last.bytes[last.runs.at(-1) ?? 0] !== STREAM[stream]
      const room = BLOCK_BYTES - last.used - (isNewRun ? 1 : 0)
      if (room >= Math.min(wanted, SPARE_BYTES)) {
        reserve(last, wanted + 1)
        if (isNewRun) beginRun(last, stream)
        return last
      }
    }
    const block: Block = {
      start: this.#end,
      bytes: wanted < FLOOD_BYTES ? NOTHING : new Uint8Array(BLOCK_BYTES),
      used: 0,
      runs: [],
    }
    reserve(block, wanted + 1)
    beginRun(block, stream)
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
      else if (offset >= endOf(block)) low = middle + 1
      else return block
    }
    return undefined
  }
}

function endOf(block: Block): number {
  return block.start + block.used - block.runs.length
}

/** Index of the run that holds the payload byte `offset` of the block. */
function findRun(block: Block, offset: number): number {
  let low = 0
  let high = block.runs.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((block.runs[middle] ?? 0) - middle <= offset) low = middle
    else high = middle - 1
  }
  return low
}

function beginRun(block: Block, stream: OutputStream): void {
  block.runs.push(block.used)
  block.bytes[block.used] = STREAM[stream]
  block.used += 1
}

/** Grows a block so that `wanted` more bytes fit, or as many as a block may have. */
function reserve(block: Block, wanted: number): void {
  const capacity = block.bytes.byteLength
  const needed = Math.min(BLOCK_BYTES, block.used + wanted)
  if (needed <= capacity) return
  const grown = new Uint8Array(Math.min(BLOCK_BYTES, Math.max(FIRST_BLOCK_BYTES, capacity * 2, needed)))
  grown.set(block.bytes.subarray(0, block.used))
  block.bytes = grown
}
