import { createStore, type Store } from '@sandwire/client'
import { requestJson } from '../api/request.ts'
import { type FileEntry, type FolderListing, type WatchEvent, workspaceUrl } from '../api/workspace.ts'
import { messageOf } from '../state/workbench.ts'
import { isWithin, joinPath, parentOf, ROOT } from './paths.ts'
import { isFolder } from './tree-lines.ts'

/** What a folder holds beyond the loaded entries. */
type FolderRest =
  | { readonly kind: 'none' }
  /** Continues after this name. */
  | { readonly kind: 'more'; readonly after: string }
  | { readonly kind: 'failed'; readonly after: string; readonly message: string }
  | { readonly kind: 'tooMany' }

/** Load state of a folder. */
export type Folder =
  | { readonly kind: 'loading' }
  | { readonly kind: 'ready'; readonly entries: readonly FileEntry[]; readonly rest: FolderRest }
  | { readonly kind: 'failed'; readonly message: string }

export interface TreeState {
  readonly folders: Readonly<Record<string, Folder>>
  readonly open: ReadonlySet<string>
}

/** Lists a folder, from its start or after a name. Names are sorted bytewise. */
type ReadFolder = (path: string, after?: string) => Promise<FolderListing>

/** Entries loaded of one folder: about ten pages, which are reloaded whenever the folder changes. */
const MAX_ENTRIES = 100_000
/** Entries kept of a tree that is not shown; larger trees are reloaded. */
const MAX_KEPT_ENTRIES = 20_000

const BY_NAME = new Intl.Collator('en', { numeric: true })

/** Folders first, then by name with numbers in numeric order. */
function sortEntries(entries: readonly FileEntry[]): readonly FileEntry[] {
  return entries.toSorted((left, right) => {
    const [first, second] = [isFolder(left), isFolder(right)]
    if (first !== second) return first ? -1 : 1
    return BY_NAME.compare(left.name, right.name) || (left.name < right.name ? -1 : 1)
  })
}

function folderRest({ entries, truncated }: FolderListing, known: number): FolderRest {
  if (!truncated) return { kind: 'none' }
  const last = entries.at(-1)
  return last === undefined || known >= MAX_ENTRIES ? { kind: 'tooMany' } : { kind: 'more', after: last.name }
}

/** The folders of a workspace, loaded when expanded and reloaded when they change. */
export class FileTree {
  readonly #read: ReadFolder
  readonly #state = createStore<TreeState>({ folders: {}, open: new Set() })
  /** The latest load of each folder; results of older ones are dropped. */
  readonly #readings = new Map<string, number>()
  /** Folders whose next page is loading. */
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

  /** Loads a folder up to the number of entries known so far, at least one page. */
  async load(path: string): Promise<void> {
    const reading = (this.#readings.get(path) ?? 0) + 1
    this.#readings.set(path, reading)
    const known = this.#state.get().folders[path]
    // Keeps showing the known entries until the new ones are there.
    if (known?.kind !== 'ready') this.#set(path, { kind: 'loading' })
    let folder: Folder
    try {
      folder = await this.#readAsFar(path)
    } catch (caught) {
      folder = { kind: 'failed', message: messageOf(caught) }
    }
    if (this.#readings.get(path) === reading) this.#set(path, folder)
  }

  /** Reads a folder up to the number of entries known, which may grow meanwhile. */
  async #readAsFar(path: string): Promise<Folder> {
    const countKnown = (): number => {
      const known = this.#state.get().folders[path]
      return known?.kind === 'ready' ? known.entries.length : 0
    }
    const entries: FileEntry[] = []
    let rest: FolderRest
    do {
      const page = await this.#read(path, entries.at(-1)?.name)
      for (const entry of page.entries) entries.push(entry)
      rest = folderRest(page, entries.length)
    } while (rest.kind === 'more' && entries.length < countKnown())
    return { kind: 'ready', entries: sortEntries(entries), rest }
  }

  /** Loads the next page of a folder, unless it is complete or already loading. */
  async loadMore(path: string): Promise<void> {
    const folder = this.#state.get().folders[path]
    if (folder?.kind !== 'ready' || this.#growing.has(path)) return
    if (folder.rest.kind === 'none' || folder.rest.kind === 'tooMany') return
    const { after } = folder.rest
    this.#growing.add(path)
    let grown: Folder
    try {
      const page = await this.#read(path, after)
      const entries = sortEntries([...folder.entries, ...page.entries])
      grown = { kind: 'ready', entries, rest: folderRest(page, entries.length) }
    } catch (caught) {
      grown = { ...folder, rest: { kind: 'failed', after, message: messageOf(caught) } }
    }
    this.#growing.delete(path)
    if (this.#state.get().folders[path] === folder) this.#set(path, grown)
    // The folder was reloaded meanwhile: notify, so that the view asks for the next page again.
    else this.#state.set({ ...this.#state.get() })
  }

  async toggle(path: string): Promise<void> {
    const open = new Set(this.#state.get().open)
    const isOpening = !open.delete(path)
    if (isOpening) open.add(path)
    this.#state.set({ ...this.#state.get(), open })
    if (isOpening) await this.load(path)
  }

  /** Expands all parent folders of a path. */
  async reveal(path: string): Promise<void> {
    for (let folder = parentOf(path); folder !== ROOT; folder = parentOf(folder))
      if (!this.#state.get().open.has(folder)) await this.toggle(folder)
  }

  /** Reloads all visible folders. */
  async reload(): Promise<void> {
    await Promise.all([ROOT, ...this.#state.get().open].map((path) => this.load(path)))
  }

  /** Reloads the visible folders that a watch event names. */
  async follow(event: WatchEvent): Promise<void> {
    if (event.kind === 'lost') return
    if (event.kind !== 'change') return this.reload()
    const changed = new Set([...event.paths, ...event.paths.map(parentOf)])
    const { folders, open } = this.#state.get()
    const shown = Object.keys(folders).filter((path) => path === ROOT || open.has(path))
    await Promise.all(shown.filter((path) => changed.has(path)).map((path) => this.load(path)))
  }

  /** Removes a folder that was moved or deleted. */
  remove(path: string): void {
    this.#keepOnly((known) => !isWithin(known, path))
  }

  /** Called when the tree is hidden: keeps the expanded folders, and their entries if they are few enough. */
  rest(): void {
    const { folders } = this.#state.get()
    const isThere = (path: string): boolean => {
      const parent = folders[parentOf(path)]
      return (
        parent?.kind !== 'ready' ||
        parent.rest.kind !== 'none' ||
        parent.entries.some(({ name }) => joinPath(parentOf(path), name) === path)
      )
    }
    this.#keepOnly((path) => path === ROOT || (this.#state.get().open.has(path) && isThere(path)))
    const kept = this.#state.get()
    const sizes = Object.values(kept.folders).map((folder) =>
      folder.kind === 'ready' ? folder.entries.length : 0,
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

/** The file tree of a sandbox with the state of its panel, which survives while the panel is hidden. */
export class TreePanel {
  readonly tree: FileTree
  selected: { readonly path: string; readonly isFolder: boolean } | undefined
  scrollPx = 0
  /** Path that gets the focus as soon as it is drawn. */
  pendingFocus: string | undefined

  constructor(sandbox: string) {
    this.tree = FileTree.of(sandbox)
  }
}
