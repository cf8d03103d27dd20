import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { rgPath } from '@vscode/ripgrep'
import { ensureVersionFolder } from './version-folder.ts'

/** Name of sandboxd's main file in a bundle. */
export const BUNDLE_ENTRY = 'main.js'

/** Entry points of sandboxd: its program and workers. */
const ENTRIES = [
  'main.ts',
  'screen/screen-worker.ts',
  'workspace/thread/files-worker.ts',
  'versions/version-worker.ts',
]

/** A program to bundle: its source folder and entry points. */
export interface BundleSource {
  readonly name: string
  readonly root: string
  readonly entries: readonly string[]
  /** Executables copied into the folder, by the name they get there. */
  readonly programs?: Readonly<Record<string, string>>
  /** Constants to replace; tests use it to build other versions. */
  readonly define?: Readonly<Record<string, string>>
}

/** Folder of programs in a bundle of sandboxd. */
export const BUNDLE_PROGRAMS = 'bin'

/** Bundles sandboxd and the programs it runs into one folder, so that sandboxes see no source tree. Returns its path. */
export function bundleDaemon(
  sourceFolder: string,
  cacheFolder: string,
  define: BundleSource['define'] = {},
): Promise<string> {
  const programs = { [`${BUNDLE_PROGRAMS}/rg`]: rgPath }
  return bundleProgram(
    { name: 'sandboxd', root: sourceFolder, entries: ENTRIES, programs, define },
    cacheFolder,
  )
}

const EGRESS_SOURCE = path.resolve(import.meta.dir, '../egress')

/** Bundles the egress proxy into one folder with `main.js`. Returns its path. */
export function bundleEgress(cacheFolder: string): Promise<string> {
  return bundleProgram({ name: 'egress', root: EGRESS_SOURCE, entries: ['main.ts'] }, cacheFolder)
}

/** Bundles a program into a folder named by content hash, so that running sandboxes keep their version. */
export async function bundleProgram(source: BundleSource, cacheFolder: string): Promise<string> {
  const built = await Bun.build({
    entrypoints: source.entries.map((entry) => path.join(source.root, entry)),
    root: source.root,
    target: 'bun',
    naming: '[dir]/[name].[ext]',
    define: { ...source.define },
  })
  const files = await Promise.all(
    built.outputs.map(async (output) => ({ name: bundleName(output.path), text: await output.text() })),
  )
  const programs = await Promise.all(
    Object.entries(source.programs ?? {}).map(async ([name, file]) => ({
      name,
      file,
      hash: Bun.hash(await Bun.file(file).bytes()).toString(36),
    })),
  )
  const hash = Bun.hash(JSON.stringify([files, programs.map((each) => [each.name, each.hash])])).toString(36)
  return ensureVersionFolder(cacheFolder, {
    name: source.name,
    version: hash,
    write: (folder) => {
      for (const { name, text } of files) {
        mkdirSync(path.dirname(path.join(folder, name)), { recursive: true, mode: 0o755 })
        writeFileSync(path.join(folder, name), text, { mode: 0o644 })
      }
      for (const { name, file } of programs) {
        const target = path.join(folder, name)
        mkdirSync(path.dirname(target), { recursive: true, mode: 0o755 })
        copyFileSync(file, target)
        chmodSync(target, 0o755)
      }
    },
  })
}

/** Workers keep their source's name, because sandboxd starts them by it. */
function bundleName(output: string): string {
  const name = output.replace(/^\.\//, '')
  return name === BUNDLE_ENTRY ? name : name.replace(/\.js$/, '.ts')
}
