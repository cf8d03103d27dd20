/** Bytes of a line, as such listings have them. */
const LINE_BYTES = 16
/** Bytes that are shown of a file. */
export const HEX_BYTES = 64 * LINE_BYTES

function lineOf(bytes: Uint8Array, at: number): string {
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'))
  const halves = [hex.slice(0, LINE_BYTES / 2), hex.slice(LINE_BYTES / 2)].map((half) => half.join(' '))
  const text = Array.from(bytes, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.'))
  return `${at.toString(16).padStart(8, '0')}  ${halves.join('  ').padEnd(LINE_BYTES * 3)}  ${text.join('')}`
}

/** Bytes as numbers and, where they are such, as letters. */
export function hexOf(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += LINE_BYTES)
    lines.push(lineOf(bytes.subarray(at, at + LINE_BYTES), at))
  return lines.join('\n')
}
