import { type Stats, statSync } from 'node:fs'

/** Codes of the system for a path at which nothing can be found: behind a file, a circle of links, a closed door. */
const NOTHING: ReadonlySet<unknown> = new Set(['ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES'])

/** What is at a path, links followed; undefined when this user finds nothing there. */
export function findFile(file: string): Stats | undefined {
  try {
    return statSync(file, { throwIfNoEntry: false })
  } catch (error) {
    if (error instanceof Error && 'code' in error && NOTHING.has(error.code)) return undefined
    throw error
  }
}
