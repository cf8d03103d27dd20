import { SandwireError, pathFromBytes } from '@sandwire/protocol'
import { parsePath } from '../beneath/path.ts'
import { showPath } from '../beneath/show-path.ts'
import { isHiddenName } from '../files/hidden-name.ts'

/** A path of the repository as git names it, or "." for all of it; throws `path_refused`. */
export function checkPath(path: string): string {
  const names = parsePath(path).names.map(pathFromBytes)
  // Git would take `a/..` for the folder itself, whatever `a` is.
  if (names.includes('..'))
    throw new SandwireError('path_refused', `Cannot use the path ${showPath(path)}: it holds ".."`)
  return names.length === 0 ? '.' : names.join('/')
}

/** Whether a path is of a file that is being written, or in a folder that is: nobody's work yet. */
export function isUnfinished(path: string): boolean {
  return path.split('/').some(isHiddenName)
}

/** Longest name of a commit that is looked at. */
const MAX_REF_CHARS = 1_024

/** What git allows in the name of a branch or tag, with `~2` and `^1` behind it. Nothing that reads as an option or a range. */
const REF = /^(?!-)(?!.*\.\.)(?!.*@\{)[^\p{Cc}\p{Cs} ~^:?*[\\]+([~^][0-9]{0,9})*$/u

/** The name of a commit; throws `bad_request`. */
export function checkRef(ref: string, parameter: string): string {
  if (ref.length <= MAX_REF_CHARS && REF.test(ref)) return ref
  throw new SandwireError(
    'bad_request',
    `Cannot use parameter "${parameter}": ${showPath(ref)} is no name of a commit`,
  )
}
