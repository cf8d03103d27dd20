import { readFileSync, type Stats } from 'node:fs'
import { findFile } from '../data/folder-problem.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Reads a variable; an empty one counts as unset. */
export function read(env: Environment, name: string): string | undefined {
  const text = env[name]
  return text === undefined || text === '' ? undefined : text
}

/** Mode bits for other users: write, and any access. */
const WRITE_BY_OTHERS = 0o022
const ALL_OF_OTHERS = 0o077

/** A file of this user or root; links are followed, because service managers use them. */
function find(file: string): Stats | undefined {
  const found = findFile(file)
  if (found === undefined) return undefined
  if (!found.isFile()) throw new Error('it is not a file')
  if (found.uid !== process.getuid?.() && found.uid !== 0) throw new Error('it belongs to another user')
  return found
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw new Error('it cannot be read')
  }
}

/** Reads a file that other users cannot change; undefined when missing. */
export function readOperatorFile(file: string): string | undefined {
  const found = find(file)
  if (found === undefined) return undefined
  if ((found.mode & WRITE_BY_OTHERS) !== 0) throw new Error('other users can change it; run chmod go-w')
  return readText(file)
}

/** Reads a file that other users cannot open. */
export function readSecretFile(file: string): string {
  const found = find(file)
  if (found === undefined) throw new Error('no such file, or this user cannot read it')
  if ((found.mode & ALL_OF_OTHERS) !== 0) throw new Error('other users can read it; run chmod 600')
  return readText(file)
}
