/** Largest file that is opened without a question. */
export const MAX_EDIT_BYTES = 4 * 1024 * 1024
/** Largest file that is opened at all. */
export const MAX_OPEN_BYTES = 32 * 1024 * 1024
/** As far as a file is looked at to tell text from bytes. */
const PROBE_BYTES = 8_192

const IMAGES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  avif: 'image/avif',
  bmp: 'image/bmp',
  ico: 'image/x-icon',
  svg: 'image/svg+xml',
}

/** The type of a picture by its name; undefined when it is none. As the source of an `img`, no picture can run a script. */
export function imageType(path: string): string | undefined {
  return IMAGES[path.slice(path.lastIndexOf('.') + 1).toLowerCase()]
}

/** Whether a file is a text that is a picture as well. */
export function isDrawing(path: string): boolean {
  return imageType(path) === 'image/svg+xml'
}

/** The text of a file, or undefined when it is not text in UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.subarray(0, PROBE_BYTES).includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    // Another encoding, or no text at all: saving it as text would change it.
    return undefined
  }
}

/** How a file is shown. */
export function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`
  const units = ['KiB', 'MiB', 'GiB', 'TiB']
  let size = bytes / 1024
  let unit = 0
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024
    unit += 1
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit] ?? ''}`
}

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
