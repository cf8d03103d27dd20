import { realpathSync, statSync } from 'node:fs'
import { isAbsolute, relative, resolve } from 'node:path'
import { SandwireError } from '@sandwire/protocol'

/** Resolves `cwd` to a real directory inside the workspace. Throws `path_refused`. */
export function resolveCwd(workspace: string, cwd: string | undefined): string {
  const root = realpathSync(workspace)
  if (cwd === undefined || cwd === '') return root
  if (cwd.includes('\0')) throw new SandwireError('path_refused', 'Cannot use cwd: contains a NUL character')
  const shown = JSON.stringify(cwd.slice(0, 200))
  let real: string
  try {
    real = realpathSync(resolve(root, cwd))
  } catch {
    // Missing, a link loop or not readable; the caller need not know which.
    throw new SandwireError('path_refused', `Cannot use cwd ${shown}: no such folder`)
  }
  const inside = relative(root, real)
  if (inside === '..' || inside.startsWith('../') || isAbsolute(inside))
    throw new SandwireError('path_refused', `Cannot use cwd ${shown}: outside the workspace`)
  if (!statSync(real).isDirectory())
    throw new SandwireError('path_refused', `Cannot use cwd ${shown}: not a folder`)
  return real
}
