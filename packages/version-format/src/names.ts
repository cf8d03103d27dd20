const SLASH = 0x2f
const DOT = 0x2e
const MAX_NAME_BYTES = 255
/** Longest path below a root, in bytes. Linux itself opens longer ones only step by step. */
const MAX_PATH_BYTES = 64 * 1024

/** True for a name that can be an entry of a folder: not empty, `.` or `..`, and without NUL and slash. */
export function isSafeName(name: Uint8Array): boolean {
  if (name.length === 0 || name.length > MAX_NAME_BYTES) return false
  if (name.includes(0) || name.includes(SLASH)) return false
  return !(name[0] === DOT && (name.length === 1 || (name.length === 2 && name[1] === DOT)))
}

/** True for names joined by single slashes, or nothing. */
export function isSafePath(path: string): boolean {
  if (path === '') return true
  return path.length <= MAX_PATH_BYTES && path.split('/').every((name) => isSafeName(latin1Bytes(name)))
}

/** One byte per character; every character must be below 256. */
export function latin1Bytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at)
  return bytes
}

/** Characters of one code unit per byte, so that paths can be compared and used as keys. */
export function latin1Text(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return text
}

/** Path of an entry of a folder. */
export function pathIn(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`
}

/** Path of the folder that has this entry; undefined for the top. */
export function parentOf(path: string): string | undefined {
  if (path === '') return undefined
  const slash = path.lastIndexOf('/')
  return slash < 0 ? '' : path.slice(0, slash)
}
