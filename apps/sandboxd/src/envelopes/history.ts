import type { OutputLog } from '@sandwire/protocol'

/** What a client that comes to a running terminal is shown of before. */
export const HISTORY_BYTES = 200_000
/** How far a beginning in the middle of things is looked for the end of a line. */
const LINE_BYTES = 4 * 1024
/** Bytes of a character in UTF-8 after its first, at most. */
const MAX_UTF8_TAIL = 3
const NEWLINE = 0x0a

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && byte >> 6 === 0b10
}

/**
 * Where a text that begins anywhere can be shown from: behind the end of a line, where no escape sequence goes on, or, in a
 * long line, at the next character.
 */
function cleanStart(bytes: Uint8Array): number {
  const newline = bytes.subarray(0, LINE_BYTES).indexOf(NEWLINE)
  if (newline >= 0) return newline + 1
  let at = 0
  while (at < MAX_UTF8_TAIL && isContinuation(bytes[at])) at += 1
  return at
}

/** The output up to `end`, as much of it as is kept and shown. */
export function historyBefore(log: Pick<OutputLog, 'start' | 'read'>, end: number): Uint8Array {
  const from = Math.max(log.start, end - HISTORY_BYTES)
  const bytes = new Uint8Array(Math.max(0, end - from))
  let at = from
  while (at < end) {
    const slice = log.read(at, end - at)
    if (slice === undefined) break
    bytes.set(slice.bytes, at - from)
    at = slice.end
  }
  return from === 0 ? bytes : bytes.subarray(cleanStart(bytes))
}
