import { readFileSync } from 'node:fs'
import path from 'node:path'

/** What a browser loads of a built page before anybody does anything: what its HTML names, and what that imports at once. */
export function listFirstLoad(folder: string): readonly string[] {
  const found = new Set(['index.html'])
  for (const file of found) for (const next of namesIn(folder, file)) found.add(next)
  return [...found]
}

/** Files that another one cannot do without. What is imported on demand is written `import(…)`, and is not among them. */
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

/** Bytes that go over the wire for files, compressed as servers do. */
export function compressedBytes(folder: string, files: readonly string[]): number {
  const sizes = files.map((file) => Bun.gzipSync(readFileSync(path.join(folder, file))).byteLength)
  return sizes.reduce((sum, size) => sum + size, 0)
}
