import { mkdirSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { hasRecordedContent, moveDamaged, recordContent } from '../data/content-record.ts'
import { temporaryName } from '../data/private-file.ts'

/** An immutable folder of the cache: a program, or files, in one version. */
export interface VersionedContent {
  readonly name: string
  /** Part of the folder's name; other content has another version. Letters, digits, dots and hyphens. */
  readonly version: string
  /** Writes the content into a new folder. */
  readonly write: (folder: string) => void
}

/**
 * Creates the folder of a version unless it exists and is intact, and returns its path. Reading it all may take milliseconds. Everything that sandboxes see of this machine besides
 * its system folders is in such a folder: running sandboxes keep their version, and see no other files.
 */
export function ensureVersionFolder(
  cacheFolder: string,
  content: VersionedContent,
  isIntact = hasRecordedContent,
): string {
  const folder = path.join(cacheFolder, `${content.name}-${content.version}`)
  if (isIntact(folder)) return folder
  moveDamaged(folder)
  mkdirSync(cacheFolder, { recursive: true, mode: 0o700 })
  const unfinished = temporaryName(folder)
  const umask = process.umask(0o022)
  try {
    rmSync(unfinished, { recursive: true, force: true })
    mkdirSync(unfinished, { mode: 0o755 })
    content.write(unfinished)
    recordContent(folder, unfinished)
    renameSync(unfinished, folder)
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true })
    // Created concurrently.
    if (!hasRecordedContent(folder)) throw error
  } finally {
    process.umask(umask)
  }
  return folder
}
