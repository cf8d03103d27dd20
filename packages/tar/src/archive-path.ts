import { pathToBytes } from '@sandwire/protocol'

/** Depth limit of folders: more than real trees have, few enough to walk. */
export const MAX_DEPTH = 256
/** The kernel's limit, including the terminating NUL. */
const MAX_PATH_BYTES = 4095
const MAX_NAME_BYTES = 255

/** The components of a path from an archive, without `.` and empty ones; otherwise why it is refused. */
export function readArchivePath(path: string): readonly string[] | { readonly refused: string } {
  if (path === '') return { refused: 'it has no name' }
  if (path.startsWith('/')) return { refused: 'its path is absolute' }
  if (path.includes('\0')) return { refused: 'its name holds a NUL' }
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.includes('..')) return { refused: 'its path holds ".."' }
  if (parts.length > MAX_DEPTH) return { refused: `it is more than ${MAX_DEPTH} folders deep` }
  const bytes = pathToBytes(path)
  if (bytes === undefined || bytes.length > MAX_PATH_BYTES) return { refused: 'its path is too long' }
  const isLong = parts.some((part) => (pathToBytes(part)?.length ?? 0) > MAX_NAME_BYTES)
  return isLong ? { refused: 'its name is too long' } : parts
}

/**
 * True when a symbolic link with this target, `depth` real folders below the root, stays below the root, whatever other such
 * links exist: `..` is allowed only at the beginning, where it leaves real folders.
 */
export function staysBeneath(target: string, depth: number): boolean {
  if (target === '' || target.startsWith('/') || target.includes('\0')) return false
  const parts = target.split('/').filter((part) => part !== '' && part !== '.')
  const down = parts.findIndex((part) => part !== '..')
  const ups = down < 0 ? parts.length : down
  return ups <= depth && !parts.slice(ups).includes('..')
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const shorter = Math.min(a.length, b.length)
  for (let at = 0; at < shorter; at += 1) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

const ASCII = /^[\0-\x7f]*$/
const NOTHING = new Uint8Array(0)

function compareNames(a: string, b: string): number {
  if (a === b) return 0
  // For ASCII, character order equals byte order.
  if (ASCII.test(a) && ASCII.test(b)) return a < b ? -1 : 1
  return compareBytes(pathToBytes(a) ?? NOTHING, pathToBytes(b) ?? NOTHING)
}

/** The order in which a folder is packed: by the bytes of each component, folders before their content. */
export function comparePaths(a: string, b: string): number {
  const left = a.split('/')
  const right = b.split('/')
  const shorter = Math.min(left.length, right.length)
  for (let at = 0; at < shorter; at += 1) {
    const difference = compareNames(left[at] ?? '', right[at] ?? '')
    if (difference !== 0) return difference
  }
  return left.length - right.length
}
