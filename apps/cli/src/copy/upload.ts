import { randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, statSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import { TarBuffer, type TarEntry } from '@sandwire/tar'
import {
  namesFolder,
  fail,
  isContentsPath,
  isFolder,
  baseName,
  type LocalLocation,
  statRemote,
  parentOf,
  realFolder,
  type SandboxLocation,
  within,
} from './location.ts'
import { MAX_REQUEST_BYTES, retryTransfer, type Transfer } from './transfer.ts'
import {
  type LocalEntry,
  toLocalPath,
  type LocalPath,
  statLocal,
  type UnreadableEntry,
  walkLocal,
  describeSystemError,
} from './local-entries.ts'
import type { RemoteStat } from './remote-workspace.ts'
import { finishUpload, sendOpenFile, sendChunks, streamSource, uploadId } from './send-file.ts'
import { printable } from '../text/printable.ts'

/** Copies from this machine to the sandbox. */
export async function upload(transfer: Transfer, from: LocalLocation, to: SandboxLocation): Promise<void> {
  const existing = await statRemote(transfer, to.path)
  const intoFolder = isFolder(existing)
  const folder = intoFolder ? to.path : parentOf(to.path)
  if (!intoFolder && !isFolder(await statRemote(transfer, folder)))
    fail(`to "${printable(to.path)}"`, 'no such folder in the sandbox')
  if (from.kind === 'stream') {
    if (intoFolder || namesFolder(to.path)) fail(`to "${printable(to.path)}"`, 'stdin needs a file name')
    await uploadStdin(transfer, within(folder, baseName(to.path) ?? ''))
    return
  }
  const resolved = resolveUpload(from.path, { to, intoFolder, folder, existing })
  if (transfer.report.isEnabled) transfer.report.setTotal(measure(resolved))
  await uploadTree(transfer, resolved)
}

/** Finds the target name in the sandbox, with the rules of `cp`. */
function resolveUpload(
  path: string,
  {
    to,
    intoFolder,
    folder,
    existing,
  }: { to: SandboxLocation; intoFolder: boolean; folder: string; existing: RemoteStat | undefined },
): Upload {
  const shown = `"${printable(path)}"`
  const followed = statSync(path, { throwIfNoEntry: false })
  const own = lstatSync(path.replace(/(?<=.)\/+$/, ''), { throwIfNoEntry: false })
  if (own === undefined) fail(shown, 'no such file')
  const isLocalFolder = followed?.isDirectory() === true
  if (isLocalFolder && existing !== undefined && !intoFolder)
    fail(`to "${printable(to.path)}"`, 'it is not a folder')
  if (!isLocalFolder && !intoFolder && namesFolder(to.path))
    fail(`to "${printable(to.path)}"`, 'no such folder in the sandbox')
  const target = intoFolder ? baseName(path) : baseName(to.path)
  const name = intoFolder && isContentsPath(path) ? undefined : target
  // A link given by name is followed; links inside a folder stay links.
  const at = toLocalPath(followed === undefined ? path : realFolder(path))
  return { at, sandbox: to.sandbox, folder, name }
}

async function uploadStdin(transfer: Transfer, path: string): Promise<void> {
  const id = randomBytes(16).toString('hex')
  const source = streamSource(Bun.stdin.stream())
  try {
    const size = await sendChunks(transfer, source, { id, path, sizeBytes: Number.MAX_SAFE_INTEGER })
    await finishUpload(transfer, id, { path, size })
  } catch (error) {
    // If this fails, the sandbox removes it after a day.
    await transfer.remote.discardUpload(id, path).catch(() => undefined)
    throw error
  }
}

/** Larger files are uploaded in pieces, which can be resumed. */
const MAX_BATCHED_BYTES = 4 * 1024 * 1024
/** Does not block on a pipe or device, or follow a link, that replaced the file meanwhile. */
const READ_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
/** Mode that the owner needs to write into a folder. */
const OWNER_ACCESS = 0o700

/** An open local file. */
class LocalFile implements Disposable {
  readonly fd: number

  constructor(at: LocalPath) {
    this.fd = openSync(at, READ_FILE)
  }

  [Symbol.dispose](): void {
    closeSync(this.fd)
  }
}

/** Reads the start of a file into an array; returns the number of bytes. */
function readInto(fd: number, bytes: Uint8Array): number {
  let filled = 0
  while (filled < bytes.length) {
    const count = readSync(fd, bytes, filled, bytes.length - filled, filled)
    if (count === 0) break
    filled += count
  }
  return filled
}

/** Reads a small file in a consistent state. */
function readWhole(entry: LocalEntry): { entry: LocalEntry; bytes: Uint8Array } {
  using file = new LocalFile(entry.at)
  let expected = entry
  // A file that changed is read once more; one that keeps changing is refused.
  for (let round = 0; round < 2; round += 1) {
    const bytes = new Uint8Array(expected.sizeBytes)
    const filled = readInto(file.fd, bytes)
    const after = fstatSync(file.fd, { bigint: true })
    if (!after.isFile()) throw new SandwireError('special_file', 'it is a special file')
    const [mtimeNs, sizeBytes] = [String(after.mtimeNs), Number(after.size)]
    if (filled === sizeBytes && mtimeNs === expected.mtimeNs && sizeBytes === expected.sizeBytes)
      return { entry: { ...expected, mode: Number(after.mode) & 0o777 }, bytes }
    if (sizeBytes > MAX_BATCHED_BYTES) break
    expected = { ...expected, mtimeNs, sizeBytes }
  }
  throw new SandwireError('file_changed', 'it changed while it was read')
}

/** Uploads entries into a folder of the sandbox; sends one batch while the next is read. */
class Uploader {
  readonly #transfer: Transfer
  readonly #sandbox: string
  readonly #folder: string
  #batch = new Batch()
  #sending: Promise<void> = Promise.resolve()

  constructor(transfer: Transfer, sandbox: string, folder: string) {
    this.#transfer = transfer
    this.#sandbox = sandbox
    this.#folder = folder
  }

  async put(entry: LocalEntry): Promise<void> {
    this.#transfer.report.startEntry(entry.path)
    if (entry.kind === 'file' && entry.sizeBytes > MAX_BATCHED_BYTES) await this.#putLarge(entry)
    else if (entry.kind === 'file') {
      const read = readWhole(entry)
      this.#batch.add(read.entry, read.bytes)
    } else this.#batch.add(entry)
    if (this.#batch.isFull) await this.flush()
  }

  /** Sends the batch after the previous one. */
  async flush(): Promise<void> {
    const batch = this.#batch
    if (batch.isEmpty) return
    this.#batch = batch.next()
    await this.#sending
    this.#sending = this.#send(batch)
    // The next await reports the error.
    this.#sending.catch(() => undefined)
  }

  async finish(): Promise<void> {
    await this.flush()
    await this.#sending
  }

  async #send(batch: Batch): Promise<void> {
    const { remote, report } = this.#transfer
    const archive = batch.pack()
    const response = await retryTransfer(
      this.#transfer,
      () => remote.putArchive(this.#folder, archive),
      () => 0,
    )
    report.addBytes(batch.contentBytes)
    report.addEntries(response.entries)
    for (const { path, reason } of response.refused) report.problems.add(path, reason)
    report.problems.addMore(response.refusedMore)
  }

  async #putLarge(entry: LocalEntry): Promise<void> {
    // Its folder may be in the pending batch.
    await this.finish()
    using file = new LocalFile(entry.at)
    const path = within(this.#folder, entry.path)
    const { ino, dev } = fstatSync(file.fd)
    const id = uploadId([this.#sandbox, path, String(entry.sizeBytes), entry.mtimeNs, `${dev}:${ino}`])
    await sendOpenFile(this.#transfer, file.fd, { id, path })
    this.#transfer.report.addEntries()
  }
}

/** A local entry, and its name in a folder of the sandbox; undefined name: its contents. */
export interface Upload {
  readonly at: LocalPath
  readonly sandbox: string
  readonly folder: string
  readonly name: string | undefined
}

function* entriesOf({ at, name }: Upload): Generator<LocalEntry | UnreadableEntry> {
  const first = statLocal(at, name ?? '')
  if (name !== undefined) yield first
  if (first.kind === 'folder') yield* walkLocal(at, name ?? '')
}

/** Total bytes of all files. */
function measure(upload: Upload): number {
  let bytes = 0
  for (const entry of entriesOf(upload)) if (!('reason' in entry)) bytes += entry.sizeBytes
  return bytes
}

/** Uploads an entry. What cannot be read is skipped and reported. */
function uploadTree(transfer: Transfer, upload: Upload): Promise<void> {
  return uploadEntries(transfer, upload, entriesOf(upload))
}

/** Uploads entries into a folder of the sandbox, each folder before its contents. */
export async function uploadEntries(
  transfer: Transfer,
  { sandbox, folder: target }: Pick<Upload, 'sandbox' | 'folder'>,
  entries: Iterable<LocalEntry | UnreadableEntry>,
): Promise<void> {
  const { report } = transfer
  const uploader = new Uploader(transfer, sandbox, target)
  const folders: LocalEntry[] = []
  for (const entry of entries) {
    if ('reason' in entry) report.problems.add(entry.path, entry.reason)
    else if (entry.kind === 'special') report.problems.add(entry.path, 'it is a special file')
    else {
      const isFolder = entry.kind === 'folder'
      if (isFolder) folders.push(entry)
      await putOrSkip(transfer, uploader, isFolder ? { ...entry, mode: entry.mode | OWNER_ACCESS } : entry)
    }
  }
  await uploader.finish()
  // Final modes of folders, inner ones first, because an outer one may become inaccessible.
  for (const folder of folders.toReversed()) await uploader.put(folder)
  await uploader.finish()
}

async function putOrSkip({ report }: Transfer, uploader: Uploader, entry: LocalEntry): Promise<void> {
  try {
    await uploader.put(entry)
  } catch (error) {
    if (error instanceof SandwireError && error.code === 'file_changed')
      report.problems.add(entry.path, 'it changed while it was read')
    else if (error instanceof SandwireError && error.code === 'special_file')
      report.problems.add(entry.path, 'it is a special file')
    else if (error instanceof Error && 'code' in error && 'syscall' in error)
      report.problems.add(entry.path, describeSystemError(error))
    else throw error
  }
}

/** The first batch is small, so that the sandbox can start early. */
const FIRST_BATCH_BYTES = 1024 * 1024

/** Entries that are sent as one archive. */
class Batch {
  readonly #archive = new TarBuffer()
  readonly #fullBytes: number
  #contentBytes = 0

  constructor(fullBytes = FIRST_BATCH_BYTES) {
    this.#fullBytes = fullBytes
  }

  /** Each batch is larger than the one before. */
  next(): Batch {
    return new Batch(Math.min(MAX_REQUEST_BYTES, this.#fullBytes * 2))
  }

  add(entry: TarEntry, content?: Uint8Array): void {
    const { kind } = entry
    if (kind === 'special') return
    this.#archive.entry({ ...entry, kind, sizeBytes: content?.length ?? 0 })
    if (content === undefined) return
    this.#archive.content(content)
    this.#contentBytes += content.length
  }

  get isFull(): boolean {
    return this.#archive.length >= this.#fullBytes
  }

  get isEmpty(): boolean {
    return this.#archive.length === 0
  }

  get contentBytes(): number {
    return this.#contentBytes
  }

  /** Returns the complete archive. */
  pack(): Uint8Array<ArrayBuffer> {
    this.#archive.end()
    return this.#archive.take()
  }
}
