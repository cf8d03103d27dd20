import { createHash } from 'node:crypto'
import {
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { temporaryName } from './private-file.ts'

/** Files and symbolic links below a folder, in a fixed order. Bun's recursive `readdir` follows links to folders. */
function listFiles(folder: string): { readonly file: string; readonly isLink: boolean }[] {
  return readdirSync(folder, { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const file = path.join(folder, entry.name)
      return entry.isDirectory() ? listFiles(file) : [{ file, isLink: entry.isSymbolicLink() }]
    })
}

/** Hash of the names and contents of all files in a folder, and of the targets of symbolic links. */
function hashFolder(folder: string): string {
  const hash = createHash('sha256')
  for (const { file, isLink } of listFiles(folder)) {
    const bytes = isLink ? Buffer.from(readlinkSync(file)) : readFileSync(file)
    hash.update(`${path.relative(folder, file)}\0${bytes.length}\0`).update(bytes)
  }
  return hash.digest('hex')
}

function recordOf(folder: string): string {
  return `${folder}.sha256`
}

/** Records the content that `folder` will have when `finished` is renamed to it. */
export function recordContent(folder: string, finished: string): void {
  const record = recordOf(folder)
  const temporary = temporaryName(record)
  // Other users may read the folder too.
  writeFileSync(temporary, hashFolder(finished), { mode: 0o644 })
  renameSync(temporary, record)
}

/** Moves a folder with other content than recorded away. Processes that use it keep it; a later start removes it. */
export function moveDamaged(folder: string): void {
  if (!existsSync(folder)) return
  const damaged = temporaryName(`${folder}.damaged`)
  rmSync(damaged, { recursive: true, force: true })
  renameSync(folder, damaged)
}

/** True when the folder has the content that was recorded for it, and not less, as after a power failure. */
export function hasRecordedContent(folder: string): boolean {
  try {
    return readFileSync(recordOf(folder), 'utf8') === hashFolder(folder)
  } catch {
    // One of them is missing, or cannot be read.
    return false
  }
}
