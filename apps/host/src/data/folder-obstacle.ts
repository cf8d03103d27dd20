import { lstatSync, statSync } from 'node:fs'
import path from 'node:path'

/** Codes of the system for a path that cannot be looked at, in words. */
const WORDS: Readonly<Record<string, string>> = {
  EACCES: 'is in a folder that this user may not enter',
  ELOOP: 'is a link that leads in a circle',
  ENAMETOOLONG: 'is too long for a path or a name in it',
}
/** Longer paths are told by their beginning. */
const SHOWN_CHARS = 120

/** A path as it is told. */
export function showPath(place: string): string {
  return `"${place.length > SHOWN_CHARS ? `${place.slice(0, SHOWN_CHARS)}…` : place}"`
}

/** Why there is no folder at a path, nor can be one; undefined when there is one, or nothing yet. */
function obstacleAt(place: string): string | undefined {
  try {
    const found = statSync(place, { throwIfNoEntry: false })
    if (found !== undefined) return found.isDirectory() ? undefined : 'is not a folder'
    const isLink = lstatSync(place, { throwIfNoEntry: false })?.isSymbolicLink() === true
    return isLink ? 'is a link that leads nowhere' : undefined
  } catch (error) {
    // What is below a file is told by that file.
    return error instanceof Error && 'code' in error ? WORDS[String(error.code)] : undefined
  }
}

/** What keeps a folder from being made, on the way there or in its place: `"/etc/passwd" is not a folder`. */
export function findFolderObstacle(folder: string): string | undefined {
  const obstacle = obstacleAt(folder)
  if (obstacle !== undefined) return `${showPath(folder)} ${obstacle}`
  const parent = path.dirname(folder)
  return parent === folder ? undefined : findFolderObstacle(parent)
}
