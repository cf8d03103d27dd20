import { type Stats, statSync } from 'node:fs'

/** What is at a path, links followed; undefined when nothing is, nor can be because a file is in the way. */
export function findFile(file: string): Stats | undefined {
  try {
    return statSync(file, { throwIfNoEntry: false })
  } catch (error) {
    // Bun says this of a path below a file, where Node says that there is nothing.
    if (error instanceof Error && 'code' in error && error.code === 'ENOTDIR') return undefined
    throw error
  }
}
