import { close, write } from 'node:fs'
import { promisify } from 'node:util'
import { SandwireError, tar } from '@sandwire/protocol'
import { systemError } from '../thread/system-error.ts'
import type { OpenPut, Put, Refusal, TransferFiles } from './transfer-files.ts'

/** Files up to this size are held until they are put, many at a time. */
const SMALL_BYTES = 256 * 1024
/** What is held at most before it is put. */
const HELD_BYTES = 1024 * 1024
const HELD_ITEMS = 256
/** As much as is told of what was refused; the rest is counted. */
const MAX_TOLD = 1_000
/** More is no copy of a folder. */
const MAX_ENTRIES = 1_000_000
const MAX_BYTES = 256 * 1024 ** 3

const writeAt = promisify(write)
const closeFd = promisify(close)

/** What became of an archive. */
export interface Unpacked {
  readonly entries: number
  readonly bytes: number
  readonly refused: readonly { readonly path: string; readonly reason: string }[]
  /** Further ones that were refused. */
  readonly refusedMore: number
}

/** A file whose bytes are arriving. */
type Arriving =
  | { readonly is: 'held'; readonly chunks: Uint8Array[] }
  | { readonly is: 'open'; readonly file: OpenPut; at: number }
  /** It is refused, and its bytes are passed over. */
  | { readonly is: 'passed' }

interface Current {
  readonly entry: tar.TarEntry
  readonly path: string
  readonly arriving: Arriving
}

/**
 * Puts an archive into a folder, entry by entry. Nothing leaves the folder: names that would are refused, links are made only when
 * they stay in the workspace and are never followed, and devices are not made at all. Of two entries with one name the last one
 * stays. Throws when the archive is broken or the disk is full; what was put before remains.
 */
class Unpacker {
  readonly #transfer: TransferFiles
  readonly #folder: string
  /** Real folders of the workspace above this one. */
  readonly #depth: number
  #held: Put[] = []
  #heldBytes = 0
  #current: Current | undefined
  readonly #folders = new Map<string, Put>()
  #entries = 0
  #bytes = 0
  readonly #refused: { path: string; reason: string }[] = []
  #refusedMore = 0
  #begun = 0
  #arrivedBytes = 0

  constructor(transfer: TransferFiles, folder: string, depth: number) {
    this.#transfer = transfer
    this.#folder = folder
    this.#depth = depth
  }

  async take(event: tar.TarEvent): Promise<void> {
    switch (event.is) {
      case 'entry':
        return await this.#begin(event.entry)
      case 'bytes':
        return await this.#write(event.bytes)
      case 'complete':
        return await this.#complete()
      case 'note':
        return this.#refuse(event.note.path, 'it was left out when it was packed')
      case 'end':
    }
  }

  /** Everything was taken: folders get their modes and times, inner ones first. */
  async finish(): Promise<Unpacked> {
    const inwards = [...this.#folders.values()].toSorted(
      (a, b) => b.path.split('/').length - a.path.split('/').length,
    )
    for (const folder of inwards) await this.#hold(folder, 0)
    await this.#flush()
    return {
      entries: this.#entries,
      bytes: this.#bytes,
      refused: this.#refused,
      refusedMore: this.#refusedMore,
    }
  }

  /** Removes what is not complete. */
  async discard(): Promise<void> {
    const current = this.#current
    this.#current = undefined
    if (current?.arriving.is !== 'open') return
    const { file } = current.arriving
    await this.#transfer.putMany(this.#folder, [{ is: 'dropped', path: current.path, file }])
    await closeFd(file.fd)
  }

  async #begin(entry: tar.TarEntry): Promise<void> {
    this.#begun += 1
    if (this.#begun > MAX_ENTRIES)
      throw new SandwireError('file_too_large', `Cannot unpack the archive: more than ${MAX_ENTRIES} entries`)
    const parts = tar.readArchivePath(entry.path)
    const path = 'refused' in parts ? '' : parts.join('/')
    const why = 'refused' in parts ? parts.refused : this.#objectionTo(entry, parts)
    // The folder itself is there, and stays as it is.
    if (why === undefined && path === '') this.#current = { entry, path, arriving: { is: 'passed' } }
    else if (why !== undefined) this.#pass(entry, why)
    else await this.#open(entry, path)
  }

  #objectionTo({ kind, target = '' }: tar.TarEntry, parts: readonly string[]): string | undefined {
    switch (kind) {
      case 'file':
      case 'folder':
        return parts.length === 0 && kind === 'file' ? 'it has no name' : undefined
      case 'link':
        return tar.staysBeneath(target, this.#depth + parts.length - 1) ? undefined : 'the link leads outside'
      case 'hard-link': {
        const linked = tar.readArchivePath(target)
        return 'refused' in linked || linked.length === 0 ? 'the link leads outside' : undefined
      }
      case 'special':
        return 'neither a file nor a folder'
    }
  }

  #pass(entry: tar.TarEntry, why: string): void {
    this.#refuse(entry.path, why)
    this.#current = { entry, path: '', arriving: { is: 'passed' } }
  }

  #refuse(path: string, reason: string): void {
    if (this.#refused.length < MAX_TOLD) this.#refused.push({ path, reason })
    else this.#refusedMore += 1
  }

  async #open(entry: tar.TarEntry, path: string): Promise<void> {
    if (entry.kind !== 'file' || entry.sizeBytes <= SMALL_BYTES) {
      this.#current = { entry, path, arriving: { is: 'held', chunks: [] } }
      return
    }
    // What comes before must be there, and a second entry of the same name comes after.
    await this.#flush()
    try {
      const file = await this.#transfer.openPut(this.#folder, path)
      this.#current = { entry, path, arriving: { is: 'open', file, at: 0 } }
    } catch (caught) {
      const error = SandwireError.from(caught)
      if (error.code === 'disk_full' || error.code === 'internal') throw error
      this.#pass(entry, error.message)
    }
  }

  async #write(bytes: Uint8Array): Promise<void> {
    const arriving = this.#current?.arriving
    this.#arrivedBytes += bytes.length
    if (this.#arrivedBytes > MAX_BYTES)
      throw new SandwireError('file_too_large', `Cannot unpack the archive: more than ${MAX_BYTES} bytes`)
    if (arriving?.is === 'held') arriving.chunks.push(bytes.slice())
    if (arriving?.is !== 'open') return
    for (let rest = bytes; rest.length > 0;) {
      const { bytesWritten } = await writeAt(arriving.file.fd, rest, 0, rest.length, arriving.at).catch(
        (error: unknown) => {
          throw systemError(error, 'Cannot unpack the archive')
        },
      )
      arriving.at += bytesWritten
      rest = rest.subarray(bytesWritten)
    }
  }

  async #complete(): Promise<void> {
    const current = this.#current
    if (current === undefined) return
    const { entry, path, arriving } = current
    if (arriving.is === 'open') {
      const { mode, mtimeNs } = entry
      this.#bytes += arriving.at
      await this.#hold({ is: 'written', path, file: arriving.file, mode, mtimeNs }, 0)
      await this.#flush()
      this.#current = undefined
      await closeFd(arriving.file.fd)
      return
    }
    this.#current = undefined
    if (arriving.is === 'held') await this.#hold(putOf(entry, path, arriving.chunks), entry.sizeBytes)
    if (arriving.is === 'held' && entry.kind === 'folder')
      this.#folders.set(path, { is: 'settled', path, mode: entry.mode, mtimeNs: entry.mtimeNs })
  }

  async #hold(item: Put, bytes: number): Promise<void> {
    this.#held.push(item)
    this.#heldBytes += bytes
    this.#bytes += bytes
    if (this.#held.length >= HELD_ITEMS || this.#heldBytes >= HELD_BYTES) await this.#flush()
  }

  async #flush(): Promise<void> {
    const held = this.#held
    this.#held = []
    this.#heldBytes = 0
    if (held.length === 0) return
    const refusals = await this.#transfer.putMany(this.#folder, held)
    for (const [at, item] of held.entries()) this.#settle(item, refusals[at])
  }

  #settle(item: Put, refusal: Refusal | undefined): void {
    if (refusal !== undefined) this.#refuse(item.path, refusal.why)
    else if (item.is !== 'settled') this.#entries += 1
  }
}

function putOf(entry: tar.TarEntry, path: string, chunks: readonly Uint8Array[]): Put {
  const { kind, mode, mtimeNs, target = '' } = entry
  switch (kind) {
    case 'file':
      return { is: 'file', path, bytes: Buffer.concat(chunks), mode, mtimeNs }
    case 'folder':
      return { is: 'folder', path }
    case 'link':
      return { is: 'link', path, target, mtimeNs }
    case 'hard-link': {
      const parts = tar.readArchivePath(target)
      return { is: 'hard-link', path, target: 'refused' in parts ? '' : parts.join('/') }
    }
    case 'special':
      throw new SandwireError('internal', 'Cannot unpack the archive')
  }
}

/** Reads an archive and puts it into a folder of the workspace. */
export async function unpack(
  archive: AsyncIterable<Uint8Array>,
  transfer: TransferFiles,
  { folder, depth }: { readonly folder: string; readonly depth: number },
): Promise<Unpacked> {
  const unpacker = new Unpacker(transfer, folder, depth)
  const reader = new tar.TarReader()
  try {
    for await (const chunk of archive) for (const event of reader.push(chunk)) await unpacker.take(event)
    reader.end()
    return await unpacker.finish()
  } finally {
    await unpacker.discard()
  }
}
