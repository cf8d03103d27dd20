import { SandwireError } from '@sandwire/protocol'
import type { Files } from '../files.ts'

/** Folders that are looked at, and names of each. */
const MAX_FOLDERS = 300
const MAX_ENTRIES = 1_000
/** How far below the workspace: what is cloned lies in it, or in a folder of projects. */
const MAX_DEPTH = 2
const LIST_MS = 2_000

export interface Repositories {
  /** Folders with a `.git` of their own, "." for the workspace itself, which comes first; the nearer before the deeper. */
  readonly paths: readonly string[]
  /** Not everywhere was looked. */
  readonly truncated: boolean
}

type Looks = Pick<Files, 'list' | 'stat'>

/** What cannot be looked at is not there, unless something is wrong here. */
async function orElse<T>(look: () => Promise<T>, fallback: T): Promise<T> {
  try {
    return await look()
  } catch (caught) {
    if (SandwireError.from(caught).code === 'internal') throw caught
    return fallback
  }
}

async function foldersOf(files: Looks, path: string): Promise<{ names: string[]; truncated: boolean }> {
  const limits = { maxEntries: MAX_ENTRIES, timeMs: LIST_MS }
  const { entries, truncated } = await orElse(() => files.list(path, limits), {
    entries: [],
    truncated: true,
  })
  const names = entries
    .filter(({ kind, name }) => kind === 'folder' && !name.startsWith('.') && name !== 'node_modules')
    .map(({ name }) => (path === '.' ? name : `${path}/${name}`))
  return { names, truncated }
}

/** Repositories in a workspace, found by their names alone: git is not started. Links are not followed. */
export async function findRepositories(files: Looks, maxFolders = MAX_FOLDERS): Promise<Repositories> {
  const paths: string[] = []
  let isCut = false
  let looked = 0
  let level = ['.']
  for (let depth = 0; depth <= MAX_DEPTH; depth += 1) {
    const below: string[] = []
    for (const folder of level) {
      if (looked === maxFolders) return { paths, truncated: true }
      looked += 1
      if (await orElse(async () => Boolean(await files.stat(`${folder}/.git`)), false)) paths.push(folder)
      if (depth === MAX_DEPTH) continue
      const { names, truncated } = await foldersOf(files, folder)
      for (const name of names) below.push(name)
      isCut ||= truncated
    }
    level = below
  }
  return { paths, truncated: isCut }
}
