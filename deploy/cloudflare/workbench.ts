import { cpSync, readdirSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { prepareWorkbench } from '../../apps/host/src/control/workbench-files.ts'
import { compressedBytes, listFirstLoad } from './first-load.ts'

interface FilledAssets {
  readonly files: number
  readonly bytes: number
  /** Compressed bytes that a browser loads before the prompt. */
  readonly firstBytes: number
}

/** Builds the workbench if it changed and copies it to wrangler's assets folder; returns its sizes. */
export async function fillAssets(root: string, folder: string): Promise<FilledAssets> {
  const built = await prepareWorkbench(root, path.join(root, '.cache'))
  // Files of an earlier version would be uploaded too.
  rmSync(folder, { recursive: true, force: true })
  cpSync(built, folder, { recursive: true })
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  const sizes = files.map(({ parentPath, name }) => statSync(path.join(parentPath, name)).size)
  return {
    files: files.length,
    bytes: sizes.reduce((sum, size) => sum + size, 0),
    firstBytes: compressedBytes(folder, listFirstLoad(folder)),
  }
}
