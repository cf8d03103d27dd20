export type FileKind = 'file' | 'folder' | 'link' | 'special'

export interface FileStat {
  readonly kind: FileKind
  readonly sizeBytes: number
  /** The low twelve bits of `st_mode`. */
  readonly mode: number
  /** Nanoseconds since the epoch, in decimal; a number cannot hold them. */
  readonly mtimeNs: string
  /** Strong validator: two equal etags mean the same file with the same bytes. */
  readonly etag: string
}

/** An entry of a folder. Its name is a string as `pathFromBytes` returns it. */
export interface Entry extends FileStat {
  readonly name: string
  /** What a link points to, when that is a file or folder in the workspace. */
  readonly target?: 'file' | 'folder'
}

export interface Listing {
  /** Sorted by the bytes of the name. */
  readonly entries: readonly Entry[]
  /** There are more entries than requested. */
  readonly truncated: boolean
}

/** An open file. The receiver closes it. */
export interface OpenFile {
  readonly fd: number
  readonly stat: FileStat
}

/** Precondition of a change. If it is not met, the change fails with `file_changed`. */
export interface Condition {
  /** The file has one of these etags. */
  readonly ifMatch?: readonly string[]
  /** Nothing exists at the path. */
  readonly ifAbsent?: boolean
}

/** A file that is being written. It replaces its target atomically or not at all. */
export interface PendingFile {
  readonly fd: number
  /** Identifies it in `commit` and `discard`. */
  readonly id: number
}

export interface NewFile extends Condition {
  /**
   * Write to the target of a link at the end of the path if it is inside the workspace; otherwise the link itself is replaced.
   */
  readonly followsLink?: boolean
  /** Permissions; default: those of the replaced file, or the umask's. */
  readonly mode?: number
  readonly mtimeNs?: string
  /** Create missing parent folders. */
  readonly makesParents?: boolean
  /** Do not sync this file; the caller of many writes syncs them together. */
  readonly isUnsynced?: boolean
}

export interface Found extends Entry {
  /** Relative to the walked folder. */
  readonly path: string
}

export interface WalkLimits {
  readonly maxNodes: number
  readonly maxDepth: number
  readonly timeMs: number
  /** Called when a limit cut the walk short. Unreadable folders are skipped silently. */
  readonly reached?: (limit: 'nodes' | 'depth' | 'time') => void
}

/**
 * The files of one workspace, with the rights of its user. Paths are strings as `pathFromBytes` returns them, relative to the
 * root ".". Every path is resolved beneath the root while it is used: `..`, absolute paths, links and concurrent renames never
 * lead outside. Failures are errors with a code. Links inside are followed for reading; writing, moving and removing act on the
 * link itself.
 */
export interface Files {
  /** Of a link itself, with the kind of its target, unless `followsLink` is set. */
  stat(path: string, options?: { readonly followsLink?: boolean }): Promise<FileStat & Pick<Entry, 'target'>>
  list(
    path: string,
    limits: { readonly maxEntries: number; readonly timeMs: number; readonly after?: string },
  ): Promise<Listing>
  /** Opens a regular file for reading. Never blocks: a pipe, device or socket is refused. */
  open(path: string): Promise<OpenFile>
  /** Opens a folder, to start a process in it or to watch it. */
  openFolder(path: string): Promise<number>
  create(path: string, file: NewFile): Promise<PendingFile>
  /** Syncs a pending file, moves it to its path and closes it. */
  commit(id: number): Promise<FileStat>
  discard(id: number): Promise<void>
  makeFolder(path: string, options: { readonly makesParents: boolean; readonly mode?: number }): Promise<void>
  remove(
    path: string,
    options: Condition & { readonly recursive: boolean },
    signal?: AbortSignal,
  ): Promise<void>
  /** Fails when the target exists unless `replaces` is set. */
  rename(
    from: string,
    to: string,
    options: Condition & { readonly replaces: boolean },
    signal?: AbortSignal,
  ): Promise<void>
  /** Copies a file, or a folder with its contents. Links stay links; special files are skipped and counted in `left`. */
  copy(
    from: string,
    to: string,
    options: { readonly replaces: boolean },
    signal?: AbortSignal,
  ): Promise<{ readonly left: number }>
  /** Yields everything below a folder, sorted by the bytes of each path component, folders before their contents. */
  walk(path: string, limits: WalkLimits, signal?: AbortSignal): AsyncIterable<readonly Found[]>
}
