import { cpSync, readdirSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { prepareWorkbench } from '../../apps/host/src/control/workbench-files.ts'

/** Builds the workbench if it changed, and puts it where wrangler takes the files from; returns what is there. */
export async function fillAssets(root: string, folder: string): Promise<{ files: number; bytes: number }> {
  const built = await prepareWorkbench(root, path.join(root, '.cache'))
  // What an earlier version left would be uploaded too.
  rmSync(folder, { recursive: true, force: true })
  cpSync(built, folder, { recursive: true })
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  const sizes = files.map(({ parentPath, name }) => statSync(path.join(parentPath, name)).size)
  return { files: files.length, bytes: sizes.reduce((sum, size) => sum + size, 0) }
}
