import { chmodSync, copyFileSync, mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { run } from './engine.ts'

const scripts = path.dirname(import.meta.dir)
const source = path.resolve(scripts, '../deploy/sandbox')

/** Fills the build context of the image: the compiled sandboxd and the files of `deploy/sandbox`. */
export function fillContext(folder: string): void {
  mkdirSync(folder, { recursive: true })
  run('Compile sandboxd', [process.execPath, path.join(scripts, 'build.ts'), folder])
  rmSync(path.join(folder, 'sbx-stdio'))
  for (const name of ['Dockerfile', 'startup.sh'])
    copyFileSync(path.join(source, name), path.join(folder, name))
  for (const name of ['sandboxd', 'startup.sh']) chmodSync(path.join(folder, name), 0o755)
}
