import { close, fsync } from 'node:fs'
import { promisify } from 'node:util'
import { SandwireError } from '@sandwire/protocol'
import type {
  Condition,
  Entry,
  Files,
  FileStat,
  Found,
  Listing,
  NewFile,
  OpenFile,
  PendingFile,
  WalkLimits,
} from '../files.ts'
import type { Copied } from '../files/copy.ts'
import type { ListLimits } from '../files/listing.ts'
import type { FolderOptions } from '../files/write.ts'
import type {
  FinishedUpload,
  OpenPut,
  OpenUpload,
  Put,
  ManyRead,
  Refusal,
  TransferFiles,
} from '../transfer/transfer-files.ts'
import { systemError } from '../beneath/file-error.ts'
import type { FileThread } from './messages.ts'
import { WorkerClient, type WorkerClientOptions } from './worker-client.ts'

const syncFd = promisify(fsync)
const closeFd = promisify(close)

/** Abandoned uploads are kept for a day. */
const STALE_AFTER_MS = 24 * 60 * 60 * 1000

/** A file that is open for writing. */
interface Written {
  readonly fd: number
  readonly isUnsynced: boolean
}

/**
 * Runs file operations on a worker thread, which is started on first use. The thread opens, moves and removes. Bytes are read,
 * written and synced by the owner of the descriptor, so that the thread stays free for others.
 */
export class FilesThread implements Files, TransferFiles {
  readonly #link: WorkerClient<FileThread>
  readonly #written = new Map<number, Written>()
  #minted = 0

  constructor(options: Omit<WorkerClientOptions<FileThread>, 'task'>) {
    this.#link = new WorkerClient({ ...options, task: 'access files' })
  }

  stat(
    path: string,
    options: { readonly followsLink?: boolean } = {},
  ): Promise<FileStat & Pick<Entry, 'target'>> {
    return this.#link.request({ verb: 'stat', path, followsLink: options.followsLink ?? false })
  }

  list(path: string, limits: ListLimits): Promise<Listing> {
    return this.#link.request({ verb: 'list', path, limits })
  }

  async open(path: string): Promise<OpenFile> {
    const file = await this.#link.request({ verb: 'open', path })
    this.#link.adopt(file.fd)
    return file
  }

  async openFolder(path: string): Promise<number> {
    return this.#link.adopt(await this.#link.request({ verb: 'openFolder', path }))
  }

  async create(path: string, file: NewFile): Promise<PendingFile> {
    this.#minted += 1
    const made = await this.#link.request({ verb: 'create', pending: this.#minted, path, file })
    this.#link.adopt(made.fd)
    this.#written.set(made.id, { fd: made.fd, isUnsynced: file.isUnsynced ?? false })
    return made
  }

  async commit(id: number): Promise<FileStat> {
    const { fd, isUnsynced } = this.#take(id)
    try {
      if (!isUnsynced) await this.#syncOrDiscard(id, fd)
      const { stat, folder } = await this.#link.request({ verb: 'commit', pending: id })
      if (folder >= 0) await this.#closeFolder(this.#link.adopt(folder), isUnsynced)
      return stat
    } finally {
      await closeFd(fd)
    }
  }

  async discard(id: number): Promise<void> {
    const { fd } = this.#take(id)
    try {
      await this.#link.request({ verb: 'discard', pending: id })
    } finally {
      await closeFd(fd)
    }
  }

  async makeFolder(path: string, options: FolderOptions): Promise<void> {
    await this.#link.request({ verb: 'makeFolder', path, options })
  }

  async remove(
    path: string,
    options: Condition & { readonly recursive: boolean },
    signal?: AbortSignal,
  ): Promise<void> {
    await this.#link.request({ verb: 'remove', path, options }, { signal })
  }

  async rename(
    from: string,
    to: string,
    options: Condition & { readonly replaces: boolean },
    signal?: AbortSignal,
  ): Promise<void> {
    await this.#link.request({ verb: 'rename', from, to, options }, { signal })
  }

  copy(
    from: string,
    to: string,
    options: { readonly replaces: boolean },
    signal?: AbortSignal,
  ): Promise<Copied> {
    return this.#link.request({ verb: 'copy', from, to, options }, { signal })
  }

  async *walk(
    path: string,
    limits: WalkLimits,
    signal?: AbortSignal,
  ): AsyncGenerator<readonly Found[], void, void> {
    const { maxNodes, maxDepth, timeMs, reached } = limits
    const request = { verb: 'walk', path, bounds: { maxNodes, maxDepth, timeMs } } as const
    const end = yield* this.#link.parts(request, signal)
    for (const limit of end) reached?.(limit)
  }

  putMany(
    folder: string,
    items: readonly Put[],
    bytes: Uint8Array,
  ): Promise<readonly (Refusal | undefined)[]> {
    return this.#link.request({ verb: 'putMany', folder, what: { items, bytes } })
  }

  async openPut(folder: string, path: string): Promise<OpenPut> {
    const file = await this.#link.request({ verb: 'openPut', folder, path })
    this.#link.adopt(file.fd)
    return file
  }

  async readMany(folder: string, paths: readonly string[], maxBytes: number): Promise<ManyRead> {
    const many = await this.#link.request({ verb: 'readMany', folder, what: { paths, maxBytes } })
    for (const read of many.reads) if (read.kind === 'open') this.#link.adopt(read.fd)
    return many
  }

  async openUpload(path: string, id: string, makes: boolean): Promise<OpenUpload | undefined> {
    const staleBeforeNs = String(BigInt(Date.now() - STALE_AFTER_MS) * 1_000_000n)
    const file = await this.#link.request({
      verb: 'openUpload',
      upload: { path, id },
      how: { makes, staleBeforeNs },
    })
    if (file !== undefined) this.#link.adopt(file.fd)
    return file
  }

  finishUpload(path: string, id: string, finished: FinishedUpload): Promise<FileStat> {
    return this.#link.request({ verb: 'finishUpload', upload: { path, id }, finished })
  }

  dropUpload(path: string, id: string): Promise<boolean> {
    return this.#link.request({ verb: 'dropUpload', upload: { path, id } })
  }

  /** Ends the thread; a later request starts another one. */
  stop(): void {
    this.#link.stop()
  }

  #take(id: number): Written {
    const written = this.#written.get(id)
    if (written === undefined) throw new SandwireError('internal', 'Cannot write the file: it is not open')
    this.#written.delete(id)
    return written
  }

  async #syncOrDiscard(id: number, fd: number): Promise<void> {
    try {
      await syncFd(fd)
    } catch (error) {
      await this.#link.request({ verb: 'discard', pending: id })
      throw systemError(error, 'Cannot write the file')
    }
  }

  async #closeFolder(fd: number, isUnsynced: boolean): Promise<void> {
    try {
      if (!isUnsynced) await syncFd(fd)
    } catch {
      // Some file systems cannot sync folders; the bytes themselves are synced.
    } finally {
      await closeFd(fd)
    }
  }
}
