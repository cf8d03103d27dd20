import path from 'node:path'
import { INSIDE, type OutsidePaths } from './isolation.ts'
import type { SandboxFolders } from './sandbox-folders.ts'

/**
 * Where the outside finds a sandbox's things. Files on an image are there only in the sandbox's own mount namespace:
 * from outside they are below `/proc/PID/root` while it runs.
 */
export function outsidePaths(
  folders: SandboxFolders,
  machine: { readonly hasImages: boolean; readonly workspace?: string | undefined },
): OutsidePaths {
  const files = machine.hasImages ? path.join(folders.stage, 'disk') : folders.files
  return {
    daemonSocket: path.join(folders.io, path.basename(INSIDE.daemonSocket)),
    proxySocket: path.join(folders.egress, path.basename(INSIDE.proxySocket)),
    workspace: machine.workspace ?? path.join(files, 'workspace'),
    home: path.join(files, 'home'),
  }
}
