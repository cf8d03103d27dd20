import { pathToBytes, SandwireError } from '@sandwire/protocol'
import { showPath } from './file-error.ts'

/** Longest path and longest name that Linux takes, without the zero at the end. */
const MAX_PATH_BYTES = 4095
const MAX_NAME_BYTES = 255

const SLASH = 0x2f
const DOT = 0x2e

/** The names of a path, in order; none for the root itself. Some may be `..`, which never lead above the root. */
export interface RelativePath {
  readonly text: string
  readonly names: readonly Uint8Array[]
}

function isParent(name: Uint8Array): boolean {
  return name.length === 2 && name[0] === DOT && name[1] === DOT
}

/** Splits at slashes and leaves out what means nothing: empty names and `.`. */
export function namesOf(bytes: Uint8Array): Uint8Array[] {
  const names: Uint8Array[] = []
  let start = 0
  for (let at = 0; at <= bytes.length; at += 1) {
    if (at < bytes.length && bytes[at] !== SLASH) continue
    const name = bytes.subarray(start, at)
    const isNothing = name.length === 0 || (name.length === 1 && name[0] === DOT)
    if (!isNothing) names.push(name)
    start = at + 1
  }
  return names
}

/** True when `..` takes more steps up than there were down, whatever the names on the way are. */
function leaves(names: readonly Uint8Array[]): boolean {
  let depth = 0
  for (const name of names) {
    depth += isParent(name) ? -1 : 1
    if (depth < 0) return true
  }
  return false
}

function obstacleTo(text: string, bytes: Uint8Array | undefined): string | undefined {
  if (bytes === undefined) return 'it holds a character without bytes'
  if (bytes.length === 0) return 'it is empty'
  if (bytes.includes(0)) return 'it holds a NUL character'
  if (bytes[0] === SLASH) return 'it is not relative to the workspace'
  if (bytes.length > MAX_PATH_BYTES) return `it is longer than ${MAX_PATH_BYTES} bytes`
  const names = namesOf(bytes)
  if (names.some((name) => name.length > MAX_NAME_BYTES))
    return `a name is longer than ${MAX_NAME_BYTES} bytes`
  return leaves(names) ? 'it leads out of the workspace' : undefined
}

/** Reads a path relative to the workspace; throws `path_refused`, which says why. */
export function parsePath(text: string): RelativePath {
  const bytes =
    text.length > MAX_PATH_BYTES ? new Uint8Array(MAX_PATH_BYTES + 1).fill(DOT) : pathToBytes(text)
  const obstacle = obstacleTo(text, bytes)
  if (obstacle !== undefined || bytes === undefined)
    throw new SandwireError('path_refused', `Cannot use the path ${showPath(text)}: ${obstacle ?? ''}`)
  return { text, names: namesOf(bytes) }
}

/** The folder of a path and the last name in it; undefined when it has none, such as the root or `..`. */
export function splitLast(
  path: RelativePath,
): { readonly names: readonly Uint8Array[]; readonly last: Uint8Array } | undefined {
  const last = path.names.at(-1)
  return last === undefined || isParent(last) ? undefined : { names: path.names.slice(0, -1), last }
}

export { isParent }

/** Names as one path that the kernel reads, with a zero at the end. */
export function joinNames(names: readonly Uint8Array[]): Uint8Array {
  if (names.length === 0) return Uint8Array.of(DOT, 0)
  const joined = new Uint8Array(names.reduce((size, name) => size + name.length + 1, 0))
  let at = 0
  for (const name of names) {
    joined.set(name, at)
    at += name.length
    joined[at] = SLASH
    at += 1
  }
  joined[at - 1] = 0
  return joined
}

/** A path in the workspace, from a folder there and a path in that folder. What means nothing, such as `./`, is left out. */
export function pathIn(folder: string, path: string): string {
  return `${folder}/${path}`
    .split('/')
    .filter((name) => name !== '' && name !== '.')
    .join('/')
}
