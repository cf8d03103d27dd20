import { readFileSync, type Stats } from 'node:fs'
import { findFile } from '../data/folder-problem.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** An empty variable counts as absent, as shells make them so. */
export function read(env: Environment, name: string): string | undefined {
  const text = env[name]
  return text === undefined || text === '' ? undefined : text
}

/** Mode bits by which others could change a file, and by which they could do anything with it. */
const WRITE_BY_OTHERS = 0o022
const ALL_OF_OTHERS = 0o077

/** A file that this user or root wrote; links are followed, as service managers mount through them. */
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

/** Text of a file of the operator's that nobody else can change; undefined when there is none. */
export function readOperatorFile(file: string): string | undefined {
  const found = find(file)
  if (found === undefined) return undefined
  if ((found.mode & WRITE_BY_OTHERS) !== 0) throw new Error('others can change it; chmod go-w')
  return readText(file)
}

/** Text of a file of the operator's that nobody else can open. */
export function readSecretFile(file: string): string {
  const found = find(file)
  if (found === undefined) throw new Error('there is no such file, or this user may not see it')
  if ((found.mode & ALL_OF_OTHERS) !== 0) throw new Error('others can open it; chmod 600')
  return readText(file)
}
