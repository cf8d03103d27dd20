import { createStore, type Store } from '@sandwire/client'
import { type FileEntry, listFolder, type WatchEvent } from '../api/workspace.ts'
import { messageOf } from '../state/workbench.ts'
import { isWithin, joinPath, parentOf, ROOT } from './paths.ts'

/** What is known of a folder. */
export type Folder =
  | { readonly is: 'loading' }
  | { readonly is: 'ready'; readonly entries: readonly FileEntry[]; readonly truncated: boolean }
  | { readonly is: 'failed'; readonly message: string }

/** A line of the tree, in the order it is shown. */
export interface TreeLine {
  readonly path: string
  readonly entry: FileEntry
  readonly depth: number
  readonly isFolder: boolean
  readonly isOpen: boolean
  /** What is to be said below it instead of its files. */
  readonly note?: string
}

export interface TreeState {
  readonly folders: Readonly<Record<string, Folder>>
  readonly open: ReadonlySet<string>
}

export type ReadFolder = (
  path: string,
) => Promise<{ readonly entries: readonly FileEntry[]; readonly truncated: boolean }>

/** Folders first, then by name, as people expect; names that differ in case only stay beside each other. */
function inOrder(entries: readonly FileEntry[]): readonly FileEntry[] {
  return entries.toSorted((left, right) => {
    const [first, second] = [isFolder(left), isFolder(right)]
    if (first !== second) return first ? -1 : 1
    return left.name.localeCompare(right.name, 'en', { numeric: true }) || (left.name < right.name ? -1 : 1)
  })
}

function isFolder({ kind, target }: FileEntry): boolean {
  return kind === 'folder' || target === 'folder'
}

/** The lines of a tree, those of folders that are open below them. */
export function linesOf({ folders, open }: TreeState, path = ROOT, depth = 0): readonly TreeLine[] {
  const folder = folders[path]
  if (folder?.is !== 'ready') return []
  return folder.entries.flatMap((entry) => {
    const own = joinPath(path, entry.name)
    const isOpen = open.has(own)
    const note = isOpen ? noteOf(folders[own]) : undefined
    const line = {
      path: own,
      entry,
      depth,
      isFolder: isFolder(entry),
      isOpen,
      ...(note === undefined ? {} : { note }),
    }
    return isOpen ? [line, ...linesOf({ folders, open }, own, depth + 1)] : [line]
  })
}

function noteOf(folder: Folder | undefined): string | undefined {
  if (folder === undefined || folder.is === 'loading') return 'Loading…'
  if (folder.is === 'failed') return folder.message
  if (folder.entries.length === 0) return 'Empty'
  return folder.truncated ? 'There is more than is shown' : undefined
}

/** The folders of one workspace that somebody looks at. They are read when they are opened, and again when they change. */
export class FileTree {
  readonly #read: ReadFolder
  readonly #state = createStore<TreeState>({ folders: {}, open: new Set() })
  /** The last reading of each folder: an older one that comes late is dropped. */
  readonly #readings = new Map<string, number>()

  constructor(read: ReadFolder) {
    this.#read = read
  }

  static of(sandbox: string): FileTree {
    return new FileTree((path) => listFolder(sandbox, path))
  }

  get state(): Store<TreeState> {
    return this.#state
  }

  async load(path: string): Promise<void> {
    const reading = (this.#readings.get(path) ?? 0) + 1
    this.#readings.set(path, reading)
    // A folder that is shown stays shown until the new reading is there.
    if (this.#state.get().folders[path]?.is !== 'ready') this.#set(path, { is: 'loading' })
    let folder: Folder
    try {
      const { entries, truncated } = await this.#read(path)
      folder = { is: 'ready', entries: inOrder(entries), truncated }
    } catch (caught) {
      folder = { is: 'failed', message: messageOf(caught) }
    }
    if (this.#readings.get(path) === reading) this.#set(path, folder)
  }

  async toggle(path: string): Promise<void> {
    const open = new Set(this.#state.get().open)
    const isOpening = !open.delete(path)
    if (isOpening) open.add(path)
    this.#state.set({ ...this.#state.get(), open })
    if (isOpening) await this.load(path)
  }

  /** Opens every folder on the way to a path. */
  async reveal(path: string): Promise<void> {
    for (let folder = parentOf(path); folder !== ROOT; folder = parentOf(folder))
      if (!this.#state.get().open.has(folder)) await this.toggle(folder)
  }

  /** Reads again what an event says has changed, as far as it is known. */
  async follow(event: WatchEvent): Promise<void> {
    const known = Object.keys(this.#state.get().folders)
    if (event.kind === 'change') {
      const changed = new Set(event.paths.map(parentOf))
      const gone = event.paths
      await Promise.all(
        known
          .filter((path) => changed.has(path) || gone.includes(path))
          .filter((path) => path === ROOT || this.#state.get().open.has(path))
          .map((path) => this.load(path)),
      )
      return
    }
    if (event.kind === 'lost') return
    await Promise.all(
      known
        .filter((path) => path === ROOT || this.#state.get().open.has(path))
        .map((path) => this.load(path)),
    )
  }

  /** Forgets a folder that was moved or removed. */
  forget(path: string): void {
    const { folders, open } = this.#state.get()
    this.#state.set({
      folders: Object.fromEntries(Object.entries(folders).filter(([known]) => !isWithin(known, path))),
      open: new Set([...open].filter((known) => !isWithin(known, path))),
    })
  }

  #set(path: string, folder: Folder): void {
    const state = this.#state.get()
    this.#state.set({ ...state, folders: { ...state.folders, [path]: folder } })
  }
}
