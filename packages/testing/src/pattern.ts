/** Bytes that share one key; small enough for the L1 cache, large enough to amortize the key. */
const BLOCK_BYTES = 4096
const BLOCK_WORDS = BLOCK_BYTES / 4

/** The first byte of a stream that differs from the pattern. */
export interface PatternMismatch {
  /** Offset in the stream, not in the window. */
  readonly offset: number
  readonly expected: number
  readonly actual: number
}

/** Mixes seed and block number, so that blocks of one stream and of two streams all differ. */
function blockKey(seed: number, block: number): number {
  let key = Math.imul(seed ^ 0x5bd1e995, 0x85ebca6b)
  key = Math.imul((key ^ (key >>> 15)) + (block >>> 0), 0xc2b2ae35)
  key = Math.imul((key ^ (key >>> 13)) + Math.floor(block / 0x1_0000_0000), 0x27d4eb2f)
  return key ^ (key >>> 16)
}

/** Fills one block; each word is a bijection of its position, so no word repeats inside a block. */
function fillBlock(words: Uint32Array, seed: number, block: number): void {
  const key = blockKey(seed, block)
  for (let index = 0; index < BLOCK_WORDS; index++) {
    let word = key + Math.imul(index, 0x9e3779b9)
    word = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
    word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35)
    words[index] = word ^ (word >>> 16)
  }
}

/** Calls `visit` with each piece of pattern that covers the window, in order, until it returns false. */
function eachPiece(
  seed: number,
  window: { readonly offset: number; readonly length: number },
  visit: (piece: Uint8Array, at: number) => boolean,
): void {
  const words = new Uint32Array(BLOCK_WORDS)
  const bytes = new Uint8Array(words.buffer)
  for (let at = 0; at < window.length;) {
    const position = window.offset + at
    const block = Math.floor(position / BLOCK_BYTES)
    const start = position - block * BLOCK_BYTES
    const piece = bytes.subarray(start, Math.min(BLOCK_BYTES, start + window.length - at))
    fillBlock(words, seed, block)
    if (!visit(piece, at)) return
    at += piece.length
  }
}

/**
 * `length` bytes of an endless stream, starting at `offset`. Any window can be had without those before it,
 * so a test knows every byte of a stream of any size and stores none. Offsets are exact up to 2^53.
 */
export function patternAt(seed: number, offset: number, length: number): Uint8Array<ArrayBuffer> {
  const result = new Uint8Array(length)
  eachPiece(seed, { offset, length }, (piece, at) => {
    result.set(piece, at)
    return true
  })
  return result
}

/** Compares bytes with the window of the pattern at `offset`; answers the first difference, if any. */
export function verifyPattern(seed: number, offset: number, bytes: Uint8Array): PatternMismatch | undefined {
  let mismatch: PatternMismatch | undefined
  eachPiece(seed, { offset, length: bytes.length }, (piece, at) => {
    const given = bytes.subarray(at, at + piece.length)
    if (Buffer.compare(piece, given) === 0) return true
    const index = piece.findIndex((byte, position) => byte !== given[position])
    mismatch = { offset: offset + at + index, expected: piece[index] ?? -1, actual: given[index] ?? -1 }
    return false
  })
  return mismatch
}
