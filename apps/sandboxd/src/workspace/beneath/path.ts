import { pathToBytes, SandwireError } from '@sandwire/protocol'
import { quotePath } from './file-error.ts'

/** Longest path and name in Linux, without NUL. */
const MAX_PATH_BYTES = 4095
const MAX_NAME_BYTES = 255

const SLASH = 0x2f
const DOT = 0x2e

/** The components of a path; none for the root itself. Some may be `..`, but they never lead above the root. */
export interface RelativePath {
  readonly text: string
  readonly names: readonly Uint8Array[]
}

function isParent(name: Uint8Array): boolean {
  return name.length === 2 && name[0] === DOT && name[1] === DOT
}

/** Splits at slashes; drops empty names and `.`. */
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

/** True when `..` leads above the root, whatever the names are. */
function escapesRoot(names: readonly Uint8Array[]): boolean {
  let depth = 0
  for (const name of names) {
    depth += isParent(name) ? -1 : 1
    if (depth < 0) return true
  }
  return false
}

/** Why a path cannot be used; undefined when it can. */
export function findPathProblem(text: string): string | undefined {
  // Longer texts are refused below; their bytes are not needed.
  const bytes =
    text.length > MAX_PATH_BYTES ? new Uint8Array(MAX_PATH_BYTES + 1).fill(DOT) : pathToBytes(text)
  if (bytes === undefined) return 'it contains an invalid character'
  if (bytes.length === 0) return 'it is empty'
  if (bytes.includes(0)) return 'it contains a NUL character'
  if (bytes[0] === SLASH) return 'it is an absolute path'
  if (bytes.length > MAX_PATH_BYTES) return `it is longer than ${MAX_PATH_BYTES} bytes`
  const names = namesOf(bytes)
  if (names.some((name) => name.length > MAX_NAME_BYTES))
    return `a name is longer than ${MAX_NAME_BYTES} bytes`
  return escapesRoot(names) ? 'it is outside the workspace' : undefined
}

/** Parses a path relative to the workspace. Throws `path_refused` with the reason. */
export function parsePath(text: string): RelativePath {
  const problem = findPathProblem(text)
  const bytes = problem === undefined ? pathToBytes(text) : undefined
  if (bytes === undefined)
    throw new SandwireError('path_refused', `Cannot use the path ${quotePath(text)}: ${problem ?? ''}`)
  return { text, names: namesOf(bytes) }
}

/** Splits a path into its folder and last name; undefined when there is none, as for the root or `..`. */
export function splitLast(
  path: RelativePath,
): { readonly names: readonly Uint8Array[]; readonly last: Uint8Array } | undefined {
  const last = path.names.at(-1)
  return last === undefined || isParent(last) ? undefined : { names: path.names.slice(0, -1), last }
}

export { isParent }

/** Joins names to a NUL-terminated path. */
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

/** Joins a folder and a path in it; drops empty names and `.`. */
export function pathIn(folder: string, path: string): string {
  return `${folder}/${path}`
    .split('/')
    .filter((name) => name !== '' && name !== '.')
    .join('/')
}
