import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/** Name of sandboxd's main file in a bundle. */
export const BUNDLE_ENTRY = 'main.js'

/** Where sandboxd's sources are, and what of them is started by itself. */
const ENTRIES = ['main.ts', 'sessions/screen-worker.ts']

/**
 * Makes one folder that holds all code of sandboxd, so that no source tree is visible in sandboxes. It is named by its
 * content: sandboxes that run keep the code they were started with. Returns the folder.
 */
export async function bundleDaemon(sourceFolder: string, cacheFolder: string): Promise<string> {
  const built = await Bun.build({
    entrypoints: ENTRIES.map((entry) => path.join(sourceFolder, entry)),
    root: sourceFolder,
    target: 'bun',
    naming: '[dir]/[name].[ext]',
  })
  const files = await Promise.all(
    built.outputs.map(async (output) => ({ name: bundleName(output.path), text: await output.text() })),
  )
  const hash = Bun.hash(JSON.stringify(files)).toString(36)
  const folder = path.join(cacheFolder, `sandboxd-${hash}`)
  if (existsSync(folder)) return folder
  mkdirSync(cacheFolder, { recursive: true, mode: 0o700 })
  const unfinished = mkdtempSync(`${folder}.`)
  chmodSync(unfinished, 0o755)
  for (const { name, text } of files) {
    mkdirSync(path.dirname(path.join(unfinished, name)), { recursive: true, mode: 0o755 })
    writeFileSync(path.join(unfinished, name), text, { mode: 0o644 })
  }
  moveInto(folder, unfinished)
  return folder
}

/** The program starts its worker by the name of the worker's source. */
function bundleName(output: string): string {
  const name = output.replace(/^\.\//, '')
  return name === BUNDLE_ENTRY ? name : name.replace(/\.js$/, '.ts')
}

function moveInto(folder: string, unfinished: string): void {
  try {
    renameSync(unfinished, folder)
  } catch (error) {
    // Somebody else made the same at the same time.
    rmSync(unfinished, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
}
