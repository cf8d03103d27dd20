// Checks that tracked files contain no paths or registries of a developer's machine.

import path from 'node:path'

import { findForeignSources, findPrivateText } from './private-text.ts'

const root = path.dirname(import.meta.dir)
const lockfile = 'package-lock.json'
/** The hosts of `set:npm` and the like, which are public registries. */
const hostSets = 'packages/network-policy/src/host-sets.ts'

/** Files that git tracks or would add; every file when the tree is not a git checkout. */
function listFiles(): string[] {
  const argv = ['git', 'ls-files', '--cached', '--others', '--exclude-standard', '-z']
  const git = Bun.which('git') === null ? undefined : Bun.spawnSync(argv, { cwd: root, stderr: 'ignore' })
  const files = git?.success
    ? git.stdout.toString().split('\0')
    : [...new Bun.Glob('**/*').scanSync({ cwd: root, dot: true })]
  return files.filter((file) => file !== '' && !/(?:^|\/)(?:node_modules|\.git|dist|\.cache)\//.test(file))
}

for (const name of listFiles()) {
  const file = Bun.file(path.join(root, name))
  // Deleted, but still in the index.
  if (!(await file.exists())) continue
  const text = await file.text()
  const found =
    name === lockfile
      ? findForeignSources(text)
      : findPrivateText(text, name === hostSets ? 'data' : 'refused')
  for (const finding of found) {
    console.error(`${name}:${finding.line}: ${finding.text.slice(0, 160)}`)
    process.exitCode = 1
  }
}
