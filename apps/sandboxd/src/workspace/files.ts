/** What is at a path. */
export type FileKind = 'file' | 'folder' | 'link' | 'special'

/** What the file system says of a file, exactly. */
export interface FileStat {
  readonly kind: FileKind
  readonly sizeBytes: number
  /** Permission bits, the last twelve of `st_mode`. */
  readonly mode: number
  /** Nanoseconds since the epoch, in decimal: more than a number holds. */
  readonly mtimeNs: string
  /** Differs when the file is another one, or holds other bytes. Strong: two equal ones mean equal bytes. */
  readonly etag: string
}

/** One name in a folder. Names are text as `pathFromBytes` makes it. */
export interface Entry extends FileStat {
  readonly name: string
  /** What a link leads to, when that is a file or a folder inside the workspace. */
  readonly target?: 'file' | 'folder'
}

export interface Listing {
  /** In the order of their bytes. */
  readonly entries: readonly Entry[]
  /** There are more than were asked for. */
  readonly truncated: boolean
}

/** A file that is open in this process. Whoever got it closes it. */
export interface OpenFile {
  readonly fd: number
  readonly stat: FileStat
}

/** What a file must be like for a change to go ahead. Otherwise it is refused with `file_changed`. */
export interface Condition {
  /** One of these etags. */
  readonly ifMatch?: readonly string[]
  /** Nothing is there yet. */
  readonly ifAbsent?: boolean
}

/** A file that is being written beside its place. It takes the place at once, or never. */
export interface PendingFile {
  readonly fd: number
  /** Names it in `commit` and `discard`. */
  readonly id: number
}

export interface NewFile extends Condition {
  /** Where the path ends at a link that stays inside, write what it leads to; the link itself is replaced otherwise. */
  readonly followsLink?: boolean
  /** Permission bits; those of the file that is replaced, or the usual ones, when absent. */
  readonly mode?: number
  readonly mtimeNs?: string
  /** Make missing folders on the way. */
  readonly makesParents?: boolean
  /** Whoever writes many files says when they have to be on the disk; otherwise each is when it is committed. */
  readonly isUnsynced?: boolean
}

/** A file or folder found by walking. */
export interface Found extends Entry {
  /** Path from the folder that was walked. */
  readonly path: string
}

export interface WalkLimits {
  readonly maxNodes: number
  readonly maxDepth: number
  readonly timeMs: number
  /** Told when a limit left something out. Folders that cannot be read are left out without. */
  readonly reached?: (limit: 'nodes' | 'depth' | 'time') => void
}

/**
 * The files of one workspace, as its user may use them. Paths are text as `pathFromBytes` makes it, relative to the root, which is
 * ".". Every one is resolved beneath the root by the kernel, component by component, while it is used: nothing outside is
 * reached by `..`, an absolute path, a link, or by what is swapped meanwhile. Refusals are errors with a code; links are followed
 * inside, but what is written, moved or removed is the link itself.
 */
export interface Files {
  /** Of a link itself, with what it leads to, unless it is to be followed. */
  stat(path: string, options?: { readonly followsLink?: boolean }): Promise<FileStat & Pick<Entry, 'target'>>
  list(
    path: string,
    limits: { readonly maxEntries: number; readonly timeMs: number; readonly after?: string },
  ): Promise<Listing>
  /** A regular file, to read. Never waits: a pipe, a device or a socket is refused. */
  open(path: string): Promise<OpenFile>
  /** A folder, to start something in or to watch. */
  openFolder(path: string): Promise<number>
  create(path: string, file: NewFile): Promise<PendingFile>
  /** Puts a pending file into its place and closes it, after its bytes are on the disk. */
  commit(id: number): Promise<FileStat>
  discard(id: number): Promise<void>
  makeFolder(path: string, options: { readonly makesParents: boolean; readonly mode?: number }): Promise<void>
  remove(
    path: string,
    options: Condition & { readonly recursive: boolean },
    signal?: AbortSignal,
  ): Promise<void>
  /** Within the workspace; never over something unless `replaces` says so. */
  rename(
    from: string,
    to: string,
    options: Condition & { readonly replaces: boolean },
    signal?: AbortSignal,
  ): Promise<void>
  /** A file, or a folder with all that is in it; links stay links, special files are left out and counted. */
  copy(
    from: string,
    to: string,
    options: { readonly replaces: boolean },
    signal?: AbortSignal,
  ): Promise<{ readonly left: number }>
  /** Everything below a folder, in the order of the bytes of each path's components, folders before what is in them. */
  walk(path: string, limits: WalkLimits, signal?: AbortSignal): AsyncIterable<readonly Found[]>
}
