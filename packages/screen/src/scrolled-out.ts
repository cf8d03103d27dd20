/** Output of which the middle leaves no trace: whether that is so is seen after the first two parts. */
export interface ScrollingText {
  /** Everything that is more than text, and then enough lines to bring the cursor to the last row. */
  readonly head: Uint8Array
  /** A line with text: where it is drawn and makes room for the next, so do those that follow. */
  readonly probe: Uint8Array
  /** What is scrolled out again by what follows it. */
  readonly middle: Uint8Array
  /** Lines that fill the screen and all that is kept above it. */
  readonly tail: Uint8Array
}

const TAB = 0x09
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const TILDE = 0x7e
const DELETE = 0x7f
/** In UTF-8 the control characters behind ASCII begin with it, and few others. */
const CONTROL_LEAD = 0xc2
/** Less than this is parsed as soon as it is looked at. */
const WORTH_BYTES = 64 * 1024
/** By this much of its end it is told whether something is text. */
const SAMPLE_BYTES = 4_096

/** Text, or the end of a line: nothing that changes more than the lines it stands in. */
function isText(byte: number): boolean {
  if (byte > TILDE) return byte !== DELETE && byte !== CONTROL_LEAD
  return byte >= SPACE || byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === TAB
}

/** The same for each byte, as floods are looked at byte by byte. */
const TEXT = Uint8Array.from({ length: 256 }, (_, byte) => (isText(byte) ? 1 : 0))

/** Where the text begins that everything ends with. */
function startOfText(bytes: Uint8Array): number {
  let at = bytes.byteLength - 1
  while (at >= 0 && TEXT[bytes[at] ?? 0] === 1) at -= 1
  return at + 1
}

/** Lines that end in bytes which are nothing but text; undefined for others. */
export function countTextLines(bytes: Uint8Array): number | undefined {
  const { buffer, byteOffset, byteLength } = bytes
  const firstWord = -byteOffset & 3
  const wordCount = (byteLength - firstWord) >> 2
  const words = wordCount > 0 ? new Int32Array(buffer, byteOffset + firstWord, wordCount) : new Int32Array(0)
  let lines = 0
  for (let at = 0; at < byteLength; at += 1) {
    // Most of a flood is printable ASCII, and is passed over four bytes at a time.
    if (((at - firstWord) & 3) === 0) at = firstWord + 4 * skipPrintable(words, (at - firstWord) >> 2)
    const byte = bytes[at]
    if (byte === undefined) break
    if (TEXT[byte] === 0) return undefined
    if (byte === LINE_FEED && bytes[at - 1] === CARRIAGE_RETURN) lines += 1
  }
  return lines
}

/** The next word of which not every byte is printable ASCII. */
function skipPrintable(words: Int32Array, from: number): number {
  let index = from
  while (index < words.length && isPrintable(words[index] ?? 0)) index += 1
  return index
}

function isPrintable(word: number): boolean {
  return (((word - 0x20202020) | (word + 0x01010101) | word) & 0x80808080) === 0
}

/** Whether there is much, and text at its end. */
export function isTextFlood(bytes: Uint8Array): boolean {
  return bytes.byteLength >= WORTH_BYTES / 2 && startOfText(bytes.subarray(-SAMPLE_BYTES)) === 0
}

/** Whether a line ends there in both its halves, so that the next begins at the left. */
function endsLine(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === LINE_FEED && bytes[at - 1] === CARRIAGE_RETURN
}

/** Where the line behind the next `lines` ones begins. */
function skipLines(bytes: Uint8Array, from: number, lines: number): number | undefined {
  let left = lines
  for (let at = from; at < bytes.byteLength; at += 1) {
    if (!endsLine(bytes, at)) continue
    left -= 1
    if (left === 0) return at + 1
  }
  return undefined
}

/** Where the last `lines` lines begin. */
function lastLines(bytes: Uint8Array, lines: number): number | undefined {
  let left = lines + 1
  for (let at = bytes.lastIndexOf(LINE_FEED); at > 0; at = bytes.lastIndexOf(LINE_FEED, at - 1)) {
    if (!endsLine(bytes, at)) continue
    left -= 1
    if (left === 0) return at + 1
  }
  return undefined
}

/** Where the first line ends that has something in it; empty ones before it are part of it. */
function endOfText(bytes: Uint8Array, from: number): number | undefined {
  for (let end = skipLines(bytes, from, 1); end !== undefined; end = skipLines(bytes, end, 1)) {
    if (bytes.subarray(from, end).some((byte) => byte > SPACE)) return end
  }
  return undefined
}

/**
 * Finds the part of a flood that need not be parsed: lines of text that later ones push out of the screen and of what is kept
 * above it. Undefined where there is none that is worth it.
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
