import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import { Batch } from './batch.ts'
import { insist, type Journey } from './journey.ts'
import type { LocalPath } from './local-path.ts'
import { type LocalEntry, lookAt, type Unreadable, walkLocal, whyOf } from './local-tree.ts'
import { within } from './place.ts'
import { sendOpenFile, uploadId } from './send-file.ts'

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
  readonly #journey: Journey
  readonly #sandbox: string
  readonly #folder: string
  #batch = new Batch()
  #sending: Promise<void> = Promise.resolve()

  constructor(journey: Journey, sandbox: string, folder: string) {
    this.#journey = journey
    this.#sandbox = sandbox
    this.#folder = folder
  }

  async put(entry: LocalEntry): Promise<void> {
    this.#journey.copying.at(entry.path)
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
    const { remote, copying } = this.#journey
    const archive = batch.pack()
    const answer = await insist(
      this.#journey,
      () => remote.putArchive(this.#folder, archive),
      () => 0,
    )
    copying.moved(batch.contentBytes)
    copying.done(answer.entries)
    for (const { path, reason } of answer.refused) copying.leftOut.add(path, reason)
    copying.leftOut.addMore(answer.refusedMore)
  }

  async #putLarge(entry: LocalEntry): Promise<void> {
    // Its folder is among what was put before.
    await this.finish()
    using file = new LocalFile(entry.at)
    const path = within(this.#folder, entry.path)
    const { ino, dev } = fstatSync(file.fd)
    const id = uploadId([this.#sandbox, path, String(entry.sizeBytes), entry.mtimeNs, `${dev}:${ino}`])
    await sendOpenFile(this.#journey, file.fd, { id, path })
    this.#journey.copying.done()
  }
}

/** A file, folder or link of this machine, and its name in a folder of the sandbox; undefined when what is in it is meant. */
export interface Upload {
  readonly at: LocalPath
  readonly sandbox: string
  readonly folder: string
  readonly name: string | undefined
}

function* entriesOf({ at, name }: Upload): Generator<LocalEntry | Unreadable> {
  const first = lookAt(at, name ?? '')
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
export async function uploadTree(journey: Journey, upload: Upload): Promise<void> {
  const { copying } = journey
  const uploader = new Uploader(journey, upload.sandbox, upload.folder)
  const folders: LocalEntry[] = []
  for (const entry of entriesOf(upload)) {
    if ('why' in entry) copying.leftOut.add(entry.path, entry.why)
    else if (entry.kind === 'special') copying.leftOut.add(entry.path, 'neither a file nor a folder')
    else {
      const isFolder = entry.kind === 'folder'
      if (isFolder) folders.push(entry)
      await putOrTell(journey, uploader, isFolder ? { ...entry, mode: entry.mode | WORKABLE } : entry)
    }
  }
  await uploader.finish()
  // Now that everything is in them; inner ones first, because an outer one may let nobody in afterwards.
  for (const folder of folders.toReversed()) await uploader.put(folder)
  await uploader.finish()
}

async function putOrTell({ copying }: Journey, uploader: Uploader, entry: LocalEntry): Promise<void> {
  try {
    await uploader.put(entry)
  } catch (error) {
    if (error instanceof SandwireError && error.code === 'file_changed')
      copying.leftOut.add(entry.path, 'it changed while it was read')
    else if (error instanceof SandwireError && error.code === 'special_file')
      copying.leftOut.add(entry.path, 'neither a file nor a folder')
    else if (error instanceof Error && 'code' in error && 'syscall' in error)
      copying.leftOut.add(entry.path, whyOf(error))
    else throw error
  }
}
