import { cpSync, readdirSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { prepareWorkbench } from '../../apps/host/src/control/workbench-files.ts'
import { compressedBytes, listFirstLoad } from './first-load.ts'

interface FilledAssets {
  readonly files: number
  readonly bytes: number
  /** Of them, compressed, what a browser loads before there is a prompt. */
  readonly firstBytes: number
}

/** Builds the workbench if it changed, and puts it where wrangler takes the files from; returns what is there. */
export async function fillAssets(root: string, folder: string): Promise<FilledAssets> {
  const built = await prepareWorkbench(root, path.join(root, '.cache'))
  // What an earlier version left would be uploaded too.
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
