import { SandwireError } from '@sandwire/protocol'
import type { Files } from '../files.ts'

/** Limits: folders, and names per folder. */
const MAX_FOLDERS = 300
const MAX_ENTRIES = 1_000
/** Depth: clones are in the workspace or in a folder of projects. */
const MAX_DEPTH = 2
const LIST_MS = 2_000

export interface Repositories {
  /** Folders that contain `.git`, "." for the workspace itself; shallow ones first. */
  readonly paths: readonly string[]
  /** A limit was reached. */
  readonly truncated: boolean
}

type FolderReader = Pick<Files, 'list' | 'stat'>

/** Treats an unreadable folder as empty; internal errors are thrown. */
async function orElse<T>(read: () => Promise<T>, fallback: T): Promise<T> {
  try {
    return await read()
  } catch (caught) {
    if (SandwireError.from(caught).code === 'internal') throw caught
    return fallback
  }
}

async function foldersOf(
  files: FolderReader,
  path: string,
): Promise<{ names: string[]; truncated: boolean }> {
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

/** Finds repositories by the name `.git`, without running git. Links are not followed. */
export async function findRepositories(files: FolderReader, maxFolders = MAX_FOLDERS): Promise<Repositories> {
  const paths: string[] = []
  let isCut = false
  let visited = 0
  let level = ['.']
  for (let depth = 0; depth <= MAX_DEPTH; depth += 1) {
    const below: string[] = []
    for (const folder of level) {
      if (visited === maxFolders) return { paths, truncated: true }
      visited += 1
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
