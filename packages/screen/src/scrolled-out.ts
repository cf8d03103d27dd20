/** Output whose middle need not be parsed. The terminal verifies that after it has parsed `head` and `probe`. */
export interface ScrollingText {
  /** Everything that is not only text, then enough lines to move the cursor to the last row. */
  readonly head: Uint8Array
  /** A line with text. If the terminal draws it and scrolls, it does so for the following lines too. */
  readonly probe: Uint8Array
  /** Lines that later lines scroll out. */
  readonly middle: Uint8Array
  /** Lines that fill the screen and the scrollback. */
  readonly tail: Uint8Array
}

const TAB = 0x09
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const TILDE = 0x7e
const DELETE = 0x7f
/** First UTF-8 byte of the C1 control characters and of few others. */
const CONTROL_LEAD = 0xc2
/** Smaller output is parsed completely. */
const WORTH_BYTES = 64 * 1024
/** Bytes at the end that decide whether output ends in text. */
const SAMPLE_BYTES = 4_096

/** True for text and line ends, which change only the lines they are in. */
function isText(byte: number): boolean {
  if (byte > TILDE) return byte !== DELETE && byte !== CONTROL_LEAD
  return byte >= SPACE || byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === TAB
}

/** The same as a table, because floods are scanned byte by byte. */
const TEXT = Uint8Array.from({ length: 256 }, (_, byte) => (isText(byte) ? 1 : 0))

/** Start of the text at the end of the bytes. */
function startOfText(bytes: Uint8Array): number {
  let at = bytes.byteLength - 1
  while (at >= 0 && TEXT[bytes[at] ?? 0] === 1) at -= 1
  return at + 1
}

/** Number of line ends in bytes that are only text; undefined for other bytes. */
export function countTextLines(bytes: Uint8Array): number | undefined {
  const { buffer, byteOffset, byteLength } = bytes
  const firstWord = -byteOffset & 3
  const wordCount = (byteLength - firstWord) >> 2
  const words = wordCount > 0 ? new Int32Array(buffer, byteOffset + firstWord, wordCount) : new Int32Array(0)
  let lines = 0
  for (let at = 0; at < byteLength; at += 1) {
    // Most of a flood is printable ASCII, which is skipped four bytes at a time.
    if (((at - firstWord) & 3) === 0) at = firstWord + 4 * skipPrintable(words, (at - firstWord) >> 2)
    const byte = bytes[at]
    if (byte === undefined) break
    if (TEXT[byte] === 0) return undefined
    if (byte === LINE_FEED && bytes[at - 1] === CARRIAGE_RETURN) lines += 1
  }
  return lines
}

/** The next word with a byte that is not printable ASCII. */
function skipPrintable(words: Int32Array, from: number): number {
  let index = from
  while (index < words.length && isPrintable(words[index] ?? 0)) index += 1
  return index
}

function isPrintable(word: number): boolean {
  return (((word - 0x20202020) | (word + 0x01010101) | word) & 0x80808080) === 0
}

/** True for large output that ends in text. */
export function isTextFlood(bytes: Uint8Array): boolean {
  return bytes.byteLength >= WORTH_BYTES / 2 && startOfText(bytes.subarray(-SAMPLE_BYTES)) === 0
}

/** True when CR and LF precede this position, so that the next line starts in the first column. */
function endsLine(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === LINE_FEED && bytes[at - 1] === CARRIAGE_RETURN
}

/** Start of the line after the next `lines` lines. */
function skipLines(bytes: Uint8Array, from: number, lines: number): number | undefined {
  let left = lines
  for (let at = from; at < bytes.byteLength; at += 1) {
    if (!endsLine(bytes, at)) continue
    left -= 1
    if (left === 0) return at + 1
  }
  return undefined
}

/** Start of the last `lines` lines. */
function lastLines(bytes: Uint8Array, lines: number): number | undefined {
  let left = lines + 1
  for (let at = bytes.lastIndexOf(LINE_FEED); at > 0; at = bytes.lastIndexOf(LINE_FEED, at - 1)) {
    if (!endsLine(bytes, at)) continue
    left -= 1
    if (left === 0) return at + 1
  }
  return undefined
}

/** End of the first line that is not empty, including empty lines before it. */
function endOfText(bytes: Uint8Array, from: number): number | undefined {
  for (let end = skipLines(bytes, from, 1); end !== undefined; end = skipLines(bytes, end, 1)) {
    if (bytes.subarray(from, end).some((byte) => byte > SPACE)) return end
  }
  return undefined
}

/**
 * Finds the part of a flood that need not be parsed: lines of text that later lines scroll out of the screen and the
 * scrollback. Undefined when there is none or it is too small.
 */
export function findScrolledOut(
  bytes: Uint8Array,
  { rows, scrollback }: { readonly rows: number; readonly scrollback: number },
): ScrollingText | undefined {
  const start = startOfText(bytes)
  if (bytes.byteLength - start < WORTH_BYTES) return undefined
  const headEnd = skipLines(bytes, start, rows)
  if (headEnd === undefined) return undefined
  const probeEnd = endOfText(bytes, headEnd)
  const tailStart = lastLines(bytes, rows + scrollback)
  if (probeEnd === undefined || tailStart === undefined || tailStart <= probeEnd) return undefined
  return {
    head: bytes.subarray(0, headEnd),
    probe: bytes.subarray(headEnd, probeEnd),
    middle: bytes.subarray(probeEnd, tailStart),
    tail: bytes.subarray(tailStart),
  }
}
