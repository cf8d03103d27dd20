import { readFileSync } from 'node:fs'
import path from 'node:path'

/** The files that a browser loads with a built page: those that its HTML references, and their static imports. */
export function listFirstLoad(folder: string): readonly string[] {
  const found = new Set(['index.html'])
  for (const file of found) for (const next of namesIn(folder, file)) found.add(next)
  return [...found]
}

/** The static imports of a file; dynamic `import(…)` is not included. */
function namesIn(folder: string, file: string): readonly string[] {
  const text = readFileSync(path.join(folder, file), 'utf8')
  if (file.endsWith('.html'))
    return Array.from(text.matchAll(/\b(?:src|href)="\/([^"]+)"/g), ([, name]) => name ?? '')
  if (!file.endsWith('.js')) return []
  const names = Array.from(
    text.matchAll(/(?:\bfrom|\bimport) ?["'](\.\/[^"']+)["']/g),
    ([, name]) => name ?? '',
  )
  return names.map((name) => path.join(path.dirname(file), name))
}

/** Compressed size of files in bytes. */
export function compressedBytes(folder: string, files: readonly string[]): number {
  const sizes = files.map((file) => Bun.gzipSync(readFileSync(path.join(folder, file))).byteLength)
  return sizes.reduce((sum, size) => sum + size, 0)
}
