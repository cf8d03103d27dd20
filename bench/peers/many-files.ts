import { globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Random } from '@sandwire/testing'

const SOURCES = resolve(import.meta.dir, '../../node_modules')
const FILES_PER_FOLDER = 7
/** About 5 KB for each of 50,000 files. */
const MAX_CORPUS_BYTES = 240 * 1024 * 1024

/** Text of installed packages, then a program: together they compress as a project with its dependencies does. */
function readCorpus(): Buffer {
  const parts: Buffer[] = []
  let bytes = 0
  const texts = globSync('**/*.{js,mjs,cjs,ts,json,md}', { cwd: SOURCES }).toSorted()
  for (const path of [...texts.map((each) => join(SOURCES, each)), process.execPath]) {
    if (!statSync(path).isFile()) continue
    const part = readFileSync(path).subarray(0, MAX_CORPUS_BYTES - bytes)
    parts.push(part)
    bytes += part.byteLength
  }
  return Buffer.concat(parts)
}

/** Writes a tree like a project with dependencies: files of different text, a few per folder. Returns a path in it. */
export function writeTree(folder: string, files: number): string {
  const corpus = readCorpus()
  const random = new Random(1)
  const meanBytes = Math.floor(corpus.byteLength / files)
  let at = 0
  let path = ''
  for (let file = 0; file < files; file += 1) {
    const number = Math.floor(file / FILES_PER_FOLDER)
    const inside = join(folder, `p${number % 40}`, `m${Math.floor(number / 40)}`)
    if (file % FILES_PER_FOLDER === 0) mkdirSync(inside, { recursive: true })
    // Most files are small: squares of an even distribution.
    const bytes = Math.floor(random.next() ** 2 * 3 * meanBytes)
    path = join(inside, `file-${file}.js`)
    writeFileSync(path, corpus.subarray(at, at + bytes))
    at = (at + bytes) % corpus.byteLength
  }
  return path
}
