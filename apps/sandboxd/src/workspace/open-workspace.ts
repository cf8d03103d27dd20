import { SandwireError } from '@sandwire/protocol'
import type { Workspace } from './routes/route.ts'

function none(): never {
  throw new SandwireError('internal', 'Cannot reach files: not there yet')
}

/** The workspace of this process. */
export function openWorkspace(root: string): Workspace {
  const files = {
    ...{ stat: none, list: none, open: none, openFolder: none, create: none, commit: none, discard: none },
    ...{ makeFolder: none, remove: none, rename: none, copy: none, walk: none },
  }
  return { root, files, runTool: none }
}
