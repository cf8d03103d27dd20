import { realpathSync, statSync } from 'node:fs'
import { isAbsolute, relative, resolve } from 'node:path'
import { SandwireError } from '@sandwire/protocol'

/** The real directory that `cwd` names inside the workspace. Throws `path_refused`. */
export function resolveCwd(workspace: string, cwd: string | undefined): string {
  const root = realpathSync(workspace)
  if (cwd === undefined || cwd === '') return root
  if (cwd.includes('\0')) throw new SandwireError('path_refused', 'Cannot use cwd: it holds a NUL character')
  const shown = JSON.stringify(cwd.slice(0, 200))
  let real: string
  try {
    real = realpathSync(resolve(root, cwd))
  } catch {
    // Missing, looping or not readable: for the caller it is the same.
    throw new SandwireError('path_refused', `Cannot use cwd ${shown}: no such directory`)
  }
  const inside = relative(root, real)
  if (inside.startsWith('..') && (inside === '..' || inside.startsWith('../'))) {
    throw new SandwireError('path_refused', `Cannot use cwd ${shown}: outside the workspace`)
  }
  if (isAbsolute(inside))
    throw new SandwireError('path_refused', `Cannot use cwd ${shown}: outside the workspace`)
  if (!statSync(real).isDirectory())
    throw new SandwireError('path_refused', `Cannot use cwd ${shown}: not a directory`)
  return real
}
