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
import { retryTransfer, type Transfer } from './transfer.ts'
import {
  type LocalEntry,
  localPath,
  type LocalPath,
  statLocal,
  type UnreadableEntry,
  walkLocal,
  describeSystemError,
} from './local-entries.ts'
import type { RemoteStat } from './remote-workspace.ts'
import { finishUpload, sendOpenFile, sendPieces, streamSource, uploadId } from './send-file.ts'
import { printable } from '../text/printable.ts'

/** Copies from this machine to the sandbox. */
export async function send(transfer: Transfer, from: LocalLocation, to: SandboxLocation): Promise<void> {
  const existing = await statRemote(transfer, to.path)
  const isInto = isFolder(existing)
  const folder = isInto ? to.path : parentOf(to.path)
  if (!isInto && !isFolder(await statRemote(transfer, folder)))
    fail(`to "${printable(to.path)}"`, 'no such folder in the sandbox')
  if (from.is === 'stream') {
    if (isInto || namesFolder(to.path))
      fail(`to "${printable(to.path)}"`, 'standard input needs the name of a file')
    await uploadStdin(transfer, within(folder, baseName(to.path) ?? ''))
    return
  }
  const upload = resolveUpload(from.path, { to, isInto, folder, existing })
  if (transfer.report.isDrawn) transfer.report.expect(measure(upload))
  await uploadTree(transfer, upload)
}

/** How a local path is named in the sandbox, as `cp` has it. */
function resolveUpload(
  path: string,
  {
    to,
    isInto,
    folder,
    existing,
  }: { to: SandboxLocation; isInto: boolean; folder: string; existing: RemoteStat | undefined },
): Upload {
  const shown = `"${printable(path)}"`
  const followed = statSync(path, { throwIfNoEntry: false })
  const own = lstatSync(path.replace(/(?<=.)\/+$/, ''), { throwIfNoEntry: false })
  if (own === undefined) fail(shown, 'no such file')
  const isLocalFolder = followed?.isDirectory() === true
  if (isLocalFolder && existing !== undefined && !isInto)
    fail(`to "${printable(to.path)}"`, 'it is no folder')
  if (!isLocalFolder && !isInto && namesFolder(to.path))
    fail(`to "${printable(to.path)}"`, 'no such folder in the sandbox')
  const target = isInto ? baseName(path) : baseName(to.path)
  const name = isInto && isContentsPath(path) ? undefined : target
  // A link that is named itself is followed, as is one to a folder; those inside stay links.
  const at = localPath(followed === undefined ? path : realFolder(path))
  return { at, sandbox: to.sandbox, folder, name }
}

async function uploadStdin(transfer: Transfer, path: string): Promise<void> {
  const id = randomBytes(16).toString('hex')
  const source = streamSource(Bun.stdin.stream())
  try {
    const size = await sendPieces(transfer, source, { id, path, sizeBytes: Number.MAX_SAFE_INTEGER })
    await finishUpload(transfer, id, { path, size })
  } catch (error) {
    // What cannot be removed now, the sandbox forgets after a day.
    await transfer.remote.drop(id, path).catch(() => undefined)
    throw error
  }
}

/** Larger files go in pieces of their own, which a cut does not undo. */
const MAX_BATCHED_BYTES = 4 * 1024 * 1024
/** A pipe or a device must not be waited for, and a link not followed, even if it was put there just now. */
const READ_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
/** Folders allow their owner this much while things are put into them. */
const WORKABLE = 0o700

/** A file of this machine that is open. */
class LocalFile implements Disposable {
  readonly fd: number

  constructor(at: LocalPath) {
    this.fd = openSync(at, READ_FILE)
  }

  [Symbol.dispose](): void {
    closeSync(this.fd)
  }
}

/** Fills an array from the beginning of a file; how much there was. */
function fill(fd: number, bytes: Uint8Array): number {
  let filled = 0
  while (filled < bytes.length) {
    const count = readSync(fd, bytes, filled, bytes.length - filled, filled)
    if (count === 0) break
    filled += count
  }
  return filled
}

/** Reads a small file as it is at one moment: as it was when it was looked at, or else as it is now. */
function readWhole(entry: LocalEntry): { entry: LocalEntry; bytes: Uint8Array } {
  using file = new LocalFile(entry.at)
  let expected = entry
  // What changed since it was looked at is read again; what changes all the time is told.
  for (let round = 0; round < 2; round += 1) {
    const bytes = new Uint8Array(expected.sizeBytes)
    const filled = fill(file.fd, bytes)
    const after = fstatSync(file.fd, { bigint: true })
    if (!after.isFile()) throw new SandwireError('special_file', 'neither a file nor a folder')
    const [mtimeNs, sizeBytes] = [String(after.mtimeNs), Number(after.size)]
    if (filled === sizeBytes && mtimeNs === expected.mtimeNs && sizeBytes === expected.sizeBytes)
      return { entry: { ...expected, mode: Number(after.mode) & 0o777 }, bytes }
    if (sizeBytes > MAX_BATCHED_BYTES) break
    expected = { ...expected, mtimeNs, sizeBytes }
  }
  throw new SandwireError('file_changed', 'it changed while it was read')
}

/** Sends what is put into it to a folder of the sandbox, one batch while the next is read. */
class Uploader {
  readonly #journey: Transfer
  readonly #sandbox: string
  readonly #folder: string
  #batch = new Batch()
  #sending: Promise<void> = Promise.resolve()

  constructor(transfer: Transfer, sandbox: string, folder: string) {
    this.#journey = transfer
    this.#sandbox = sandbox
    this.#folder = folder
  }

  async put(entry: LocalEntry): Promise<void> {
    this.#journey.report.at(entry.path)
    if (entry.kind === 'file' && entry.sizeBytes > MAX_BATCHED_BYTES) await this.#putLarge(entry)
    else if (entry.kind === 'file') {
      const read = readWhole(entry)
      this.#batch.add(read.entry, read.bytes)
    } else this.#batch.add(entry)
    if (this.#batch.isFull) await this.flush()
  }

  /** Begins to send what is there, when the batch before has arrived. */
  async flush(): Promise<void> {
    const batch = this.#batch
    if (batch.isEmpty) return
    this.#batch = batch.next()
    await this.#sending
    this.#sending = this.#send(batch)
    // Whoever awaits it next sees why it failed.
    this.#sending.catch(() => undefined)
  }

  async finish(): Promise<void> {
    await this.flush()
    await this.#sending
  }

  async #send(batch: Batch): Promise<void> {
    const { remote, report } = this.#journey
    const archive = batch.pack()
    const answer = await retryTransfer(
      this.#journey,
      () => remote.putArchive(this.#folder, archive),
      () => 0,
    )
    report.moved(batch.contentBytes)
    report.done(answer.entries)
    for (const { path, reason } of answer.refused) report.leftOut.add(path, reason)
    report.leftOut.addMore(answer.refusedMore)
  }

  async #putLarge(entry: LocalEntry): Promise<void> {
    // Its folder is among what was put before.
    await this.finish()
    using file = new LocalFile(entry.at)
    const path = within(this.#folder, entry.path)
    const { ino, dev } = fstatSync(file.fd)
    const id = uploadId([this.#sandbox, path, String(entry.sizeBytes), entry.mtimeNs, `${dev}:${ino}`])
    await sendOpenFile(this.#journey, file.fd, { id, path })
    this.#journey.report.done()
  }
}

/** A file, folder or link of this machine, and its name in a folder of the sandbox; undefined when what is in it is meant. */
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

/** Bytes of all files, to say how much is left. */
export function measure(upload: Upload): number {
  let bytes = 0
  for (const entry of entriesOf(upload)) if (!('why' in entry)) bytes += entry.sizeBytes
  return bytes
}

/** Copies to the sandbox. What cannot be read is left out and told. */
export async function uploadTree(transfer: Transfer, upload: Upload): Promise<void> {
  const { report } = transfer
  const uploader = new Uploader(transfer, upload.sandbox, upload.folder)
  const folders: LocalEntry[] = []
  for (const entry of entriesOf(upload)) {
    if ('why' in entry) report.leftOut.add(entry.path, entry.why)
    else if (entry.kind === 'special') report.leftOut.add(entry.path, 'neither a file nor a folder')
    else {
      const isFolder = entry.kind === 'folder'
      if (isFolder) folders.push(entry)
      await putOrTell(transfer, uploader, isFolder ? { ...entry, mode: entry.mode | WORKABLE } : entry)
    }
  }
  await uploader.finish()
  // Now that everything is in them; inner ones first, because an outer one may let nobody in afterwards.
  for (const folder of folders.toReversed()) await uploader.put(folder)
  await uploader.finish()
}

async function putOrTell({ report }: Transfer, uploader: Uploader, entry: LocalEntry): Promise<void> {
  try {
    await uploader.put(entry)
  } catch (error) {
    if (error instanceof SandwireError && error.code === 'file_changed')
      report.leftOut.add(entry.path, 'it changed while it was read')
    else if (error instanceof SandwireError && error.code === 'special_file')
      report.leftOut.add(entry.path, 'neither a file nor a folder')
    else if (error instanceof Error && 'code' in error && 'syscall' in error)
      report.leftOut.add(entry.path, describeSystemError(error))
    else throw error
  }
}

/** Bytes after which a batch is sent, at most: large enough to be one of few requests, small enough to be sent again. */
export const BATCH_BYTES = 8 * 1024 * 1024

/** The first one is small, so that the other side has something to do soon. */
const FIRST_BATCH_BYTES = 1024 * 1024

/** Entries that are sent together as one archive. */
export class Batch {
  readonly #archive = new TarBuffer()
  readonly #fullBytes: number
  #contentBytes = 0

  constructor(fullBytes = FIRST_BATCH_BYTES) {
    this.#fullBytes = fullBytes
  }

  /** The one behind it is larger. */
  next(): Batch {
    return new Batch(Math.min(BATCH_BYTES, this.#fullBytes * 2))
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

  /** A complete archive. */
  pack(): Uint8Array<ArrayBuffer> {
    this.#archive.end()
    return this.#archive.take()
  }
}
