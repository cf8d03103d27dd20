/** Largest file that is opened without confirmation. */
export const MAX_EDIT_BYTES = 4 * 1024 * 1024
/** Largest file that is opened at all. */
export const MAX_OPEN_BYTES = 32 * 1024 * 1024
/** Bytes that are probed to tell text from binary data. */
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

/** MIME type of an image, by its extension. As the source of an `img`, an SVG runs no scripts. */
export function imageType(path: string): string | undefined {
  return IMAGES[path.slice(path.lastIndexOf('.') + 1).toLowerCase()]
}

/** True for SVG, which is text and image. */
export function isDrawing(path: string): boolean {
  return imageType(path) === 'image/svg+xml'
}

/** Decodes UTF-8; undefined for anything else. */
export function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.subarray(0, PROBE_BYTES).includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    // Saving another encoding as UTF-8 would change the file.
    return undefined
  }
}

/** A file size for display. */
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

/** Bytes per line of a hex dump. */
const LINE_BYTES = 16
/** Bytes shown of a binary file. */
export const HEX_BYTES = 64 * LINE_BYTES

function lineOf(bytes: Uint8Array, at: number): string {
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'))
  const halves = [hex.slice(0, LINE_BYTES / 2), hex.slice(LINE_BYTES / 2)].map((half) => half.join(' '))
  const text = Array.from(bytes, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.'))
  return `${at.toString(16).padStart(8, '0')}  ${halves.join('  ').padEnd(LINE_BYTES * 3)}  ${text.join('')}`
}

/** A hex dump. */
export function hexOf(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += LINE_BYTES)
    lines.push(lineOf(bytes.subarray(at, at + LINE_BYTES), at))
  return lines.join('\n')
}
