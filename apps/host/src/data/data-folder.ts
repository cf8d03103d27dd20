import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { nameFolderFault } from './folder-fault.ts'
import { makePrivateFolder } from './private-file.ts'

/** The parts of a data folder. Only this user can enter it. */
export interface DataFolder {
  readonly root: string
  /** Held by the host that uses the folder. */
  readonly lock: string
  /** Which workerd runs control, so that the next host can end an orphaned one. */
  readonly workerd: string
  readonly keys: string
  /** What `sbx-stdio` on this machine signs in with. */
  readonly localToken: string
  /** State of control's objects. */
  readonly objects: string
  /** Bundles, which can be made again. */
  readonly cache: string
  /** State of sandboxes: theirs to lay out. */
  readonly sandboxes: string
  readonly log: string
}

export function layOut(root: string): DataFolder {
  const at = (name: string): string => path.join(root, name)
  return {
    root,
    lock: at('lock'),
    workerd: at('workerd'),
    keys: at('keys'),
    localToken: at('local-token'),
    objects: at('control'),
    cache: at('cache'),
    sandboxes: at('sandboxes'),
    log: at('host.log'),
  }
}

/** Makes the folder and the parts that must exist before anybody looks. */
export function openDataFolder(root: string): DataFolder {
  const folder = layOut(root)
  try {
    for (const each of [root, folder.keys, folder.objects, folder.cache, folder.sandboxes])
      makePrivateFolder(each)
    return folder
  } catch (error) {
    if (!(error instanceof SandwireError)) throw nameFolderFault(error, root)
    throw new SandwireError('forbidden', `${error.message}\nhint: choose another folder with --data`)
  }
}
