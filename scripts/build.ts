// Compiles the programs to single executables for this machine and packs @sandwire/react, into dist/ or the given folder.

import { chmodSync, copyFileSync } from 'node:fs'
import path from 'node:path'
import { rgPath } from '@vscode/ripgrep'
import { packReact } from './react-package.ts'

const root = path.dirname(import.meta.dir)
const folder = path.resolve(process.argv[2] ?? path.join(root, 'dist'))

/** Workers are separate entry points; the executable finds them by their path relative to the program's. */
const programs = [
  { name: 'sbx-stdio', entry: 'apps/cli/src/main.ts', workers: [] },
  {
    name: 'sandboxd',
    entry: 'apps/sandboxd/src/main.ts',
    workers: [
      'apps/sandboxd/src/screen/screen-worker.ts',
      'apps/sandboxd/src/workspace/thread/files-worker.ts',
      'apps/sandboxd/src/versions/version-worker.ts',
    ],
  },
]

for (const [index, { name, entry, workers }] of programs.entries()) {
  const outfile = path.join(folder, name)
  const shown = path.relative(root, outfile)
  console.error(`[${index + 1}/${programs.length}] ${entry} → ${shown} …`)
  const startedMs = performance.now()
  const flags = ['--compile', '--minify-syntax', '--minify-whitespace']
  const argv = [process.execPath, 'build', ...flags, entry, ...workers]
  const result = Bun.spawnSync([...argv, '--outfile', outfile], { cwd: root, stdout: 'pipe', stderr: 'pipe' })
  if (!result.success) {
    console.error(`${result.stdout.toString()}${result.stderr.toString()}`)
    console.error(`error: Cannot build ${shown}: bun build exited with ${result.exitCode}`)
    process.exit(1)
  }
  const megabytes = (Bun.file(outfile).size / 1e6).toFixed(1)
  console.log(`${shown}  ${megabytes} MB  ${((performance.now() - startedMs) / 1000).toFixed(1)} s`)
}

// sandboxd looks for ripgrep beside itself.
const ripgrep = path.join(folder, 'rg')
copyFileSync(rgPath, ripgrep)
chmodSync(ripgrep, 0o755)
console.log(`${path.relative(root, ripgrep)}  ${(Bun.file(ripgrep).size / 1e6).toFixed(1)} MB`)

const packed = packReact(folder)
console.log(`${path.relative(root, packed)}  ${(Bun.file(packed).size / 1e6).toFixed(1)} MB`)
