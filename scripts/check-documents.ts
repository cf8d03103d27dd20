// Checks that the entry documents exist and stay short.

import path from 'node:path'

const root = path.dirname(import.meta.dir)

const maxLines = { 'README.md': 150, 'ARCHITECTURE.md': 200 }

for (const [name, max] of Object.entries(maxLines)) {
  const file = Bun.file(path.join(root, name))
  if (!(await file.exists())) {
    console.error(`${name} does not exist`)
    process.exitCode = 1
    continue
  }
  const lines = (await file.text()).trimEnd().split('\n').length
  if (lines > max) {
    console.error(`${name} has ${lines} lines, at most ${max} are allowed`)
    process.exitCode = 1
  }
}
