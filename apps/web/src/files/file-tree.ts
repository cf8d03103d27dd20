import { createStore, type Store } from '@sandwire/client'
import { requestJson } from '../api/request.ts'
import { type FileEntry, type FolderListing, type WatchEvent, workspaceUrl } from '../api/workspace.ts'
import { messageOf } from '../state/workbench.ts'
import { isWithin, joinPath, parentOf, ROOT } from './paths.ts'
import { isFolder } from './tree-lines.ts'

/** What a folder has besides the entries that are known. */
type FolderRest =
  | { readonly is: 'none' }
  /** It begins after this name. */
  | { readonly is: 'more'; readonly after: string }
  | { readonly is: 'failed'; readonly after: string; readonly message: string }
  | { readonly is: 'tooMany' }

/** What is known of a folder. */
export type Folder =
  | { readonly is: 'loading' }
  | { readonly is: 'ready'; readonly entries: readonly FileEntry[]; readonly rest: FolderRest }
  | { readonly is: 'failed'; readonly message: string }

export interface TreeState {
  readonly folders: Readonly<Record<string, Folder>>
  readonly open: ReadonlySet<string>
}

/** One answer about a folder, from its first name or from what comes after one. Names are in the order of their bytes. */
type ReadFolder = (path: string, after?: string) => Promise<FolderListing>

/** Entries of one folder that a page deals with: some ten answers, which are asked for again whenever the folder changes. */
const MAX_ENTRIES = 100_000
/** Entries of a tree that nobody looks at which are kept; beyond that, they are read again. */
const MAX_KEPT_ENTRIES = 20_000

const BY_NAME = new Intl.Collator('en', { numeric: true })

/** Folders first, then by name, as people expect; names that differ in case only stay beside each other. */
function sortEntries(entries: readonly FileEntry[]): readonly FileEntry[] {
  return entries.toSorted((left, right) => {
    const [first, second] = [isFolder(left), isFolder(right)]
    if (first !== second) return first ? -1 : 1
    return BY_NAME.compare(left.name, right.name) || (left.name < right.name ? -1 : 1)
  })
}

function folderRest({ entries, truncated }: FolderListing, known: number): FolderRest {
  if (!truncated) return { is: 'none' }
  const last = entries.at(-1)
  return last === undefined || known >= MAX_ENTRIES ? { is: 'tooMany' } : { is: 'more', after: last.name }
}

/** The folders of one workspace that somebody looks at. They are read when they are opened, and again when they change. */
export class FileTree {
  readonly #read: ReadFolder
  readonly #state = createStore<TreeState>({ folders: {}, open: new Set() })
  /** The last reading of each folder: an older one that comes late is dropped. */
  readonly #readings = new Map<string, number>()
  /** Folders of which more is on its way. */
  readonly #growing = new Set<string>()

  constructor(read: ReadFolder) {
    this.#read = read
  }

  static of(sandbox: string): FileTree {
    return new FileTree((path, after) =>
      requestJson<FolderListing>(workspaceUrl(sandbox, 'tree', { path, after })),
    )
  }

  get state(): Store<TreeState> {
    return this.#state
  }

  /** Reads a folder as far as it is known, at least its first part. */
  async load(path: string): Promise<void> {
    const reading = (this.#readings.get(path) ?? 0) + 1
    this.#readings.set(path, reading)
    const known = this.#state.get().folders[path]
    // A folder that is shown stays shown until the new reading is there.
    if (known?.is !== 'ready') this.#set(path, { is: 'loading' })
    const wanted = known?.is === 'ready' ? known.entries.length : 0
    let folder: Folder
    try {
      folder = await this.#readAsFar(path, wanted)
    } catch (caught) {
      folder = { is: 'failed', message: messageOf(caught) }
    }
    if (this.#readings.get(path) === reading) this.#set(path, folder)
  }

  async #readAsFar(path: string, wanted: number): Promise<Folder> {
    const entries: FileEntry[] = []
    let rest: FolderRest
    do {
      const page = await this.#read(path, entries.at(-1)?.name)
      for (const entry of page.entries) entries.push(entry)
      rest = folderRest(page, entries.length)
    } while (rest.is === 'more' && entries.length < wanted)
    return { is: 'ready', entries: sortEntries(entries), rest }
  }

  /** Reads what comes after what is known of a folder; nothing when that is all, or already on its way. */
  async loadMore(path: string): Promise<void> {
    const folder = this.#state.get().folders[path]
    if (folder?.is !== 'ready' || this.#growing.has(path)) return
    if (folder.rest.is === 'none' || folder.rest.is === 'tooMany') return
    const { after } = folder.rest
    const reading = this.#readings.get(path)
    this.#growing.add(path)
    let grown: Folder
    try {
      const page = await this.#read(path, after)
      const entries = sortEntries([...folder.entries, ...page.entries])
      grown = { is: 'ready', entries, rest: folderRest(page, entries.length) }
    } catch (caught) {
      grown = { ...folder, rest: { is: 'failed', after, message: messageOf(caught) } }
    }
    this.#growing.delete(path)
    if (this.#readings.get(path) === reading) this.#set(path, grown)
    // It was read again meanwhile, and whoever wanted more of that was told that it is on its way.
    else this.#state.set({ ...this.#state.get() })
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

  /** Reads again everything that is shown. */
  async look(): Promise<void> {
    await Promise.all([ROOT, ...this.#state.get().open].map((path) => this.load(path)))
  }

  /** Reads again what an event says has changed, as far as it is shown. */
  async follow(event: WatchEvent): Promise<void> {
    if (event.kind === 'lost') return
    if (event.kind !== 'change') return this.look()
    const changed = new Set([...event.paths, ...event.paths.map(parentOf)])
    const { folders, open } = this.#state.get()
    const shown = Object.keys(folders).filter((path) => path === ROOT || open.has(path))
    await Promise.all(shown.filter((path) => changed.has(path)).map((path) => this.load(path)))
  }

  /** Forgets a folder that was moved or removed. */
  forget(path: string): void {
    this.#keepOnly((known) => !isWithin(known, path))
  }

  /** Nobody looks for now: keeps which folders are open, and of what is in them no more than is soon shown again. */
  rest(): void {
    const { folders } = this.#state.get()
    const isThere = (path: string): boolean => {
      const parent = folders[parentOf(path)]
      return (
        parent?.is !== 'ready' ||
        parent.rest.is !== 'none' ||
        parent.entries.some(({ name }) => joinPath(parentOf(path), name) === path)
      )
    }
    this.#keepOnly((path) => path === ROOT || (this.#state.get().open.has(path) && isThere(path)))
    const kept = this.#state.get()
    const sizes = Object.values(kept.folders).map((folder) =>
      folder.is === 'ready' ? folder.entries.length : 0,
    )
    if (sizes.reduce((sum, size) => sum + size, 0) > MAX_KEPT_ENTRIES)
      this.#state.set({ folders: {}, open: kept.open })
  }

  #keepOnly(isKept: (path: string) => boolean): void {
    const { folders, open } = this.#state.get()
    this.#state.set({
      folders: Object.fromEntries(Object.entries(folders).filter(([known]) => isKept(known))),
      open: new Set([...open].filter(isKept)),
    })
  }

  #set(path: string, folder: Folder): void {
    const state = this.#state.get()
    this.#state.set({ ...state, folders: { ...state.folders, [path]: folder } })
  }
}

/** The tree of a sandbox as it was left: which folders are open, what was chosen, and how far it was scrolled. */
export class TreePanel {
  readonly tree: FileTree
  selected: { readonly path: string; readonly isFolder: boolean } | undefined
  scrollPx = 0
  /** What is to have the keyboard as soon as it is there. */
  pendingFocus: string | undefined

  constructor(sandbox: string) {
    this.tree = FileTree.of(sandbox)
  }
}
