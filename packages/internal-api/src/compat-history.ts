/** Output that a client of `/ws/pty` gets of the time before it joined. */
export const COMPAT_HISTORY_BYTES = 200_000
/** How far into the history the end of a line is searched for. */
const LINE_BYTES = 4 * 1024
/** Continuation bytes of a UTF-8 character, at most. */
const MAX_UTF8_TAIL = 3
const NEWLINE = 0x0a

/** Where truncated output can be shown from: after a newline, where no escape sequence continues, or, in a long line, at the next character. */
export function findTextStart(bytes: Uint8Array): number {
  const newline = bytes.subarray(0, LINE_BYTES).indexOf(NEWLINE)
  if (newline >= 0) return newline + 1
  let at = 0
  while (at < MAX_UTF8_TAIL && isContinuation(bytes[at])) at += 1
  return at
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && byte >> 6 === 0b10
}
