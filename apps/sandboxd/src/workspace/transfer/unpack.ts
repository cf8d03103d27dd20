import { close, write } from 'node:fs'
import { promisify } from 'node:util'
import { SandwireError } from '@sandwire/protocol'
import { readArchivePath, staysBeneath, type TarEntry, type TarEvent, TarReader } from '@sandwire/tar'
import { systemError } from '../beneath/file-error.ts'
import { PutBatch, SMALL_BYTES } from './put-batch.ts'
import type { OpenPut, Put, Refusal, Span, TransferFiles } from './transfer-files.ts'

/** Refused entries that are listed; further ones are counted. */
const MAX_TOLD = 1_000
/** Limits of one archive. */
const LIMITS = { maxEntries: 1_000_000, maxBytes: 256 * 1024 ** 3 } as const

const writeAt = promisify(write)
const closeFd = promisify(close)

/** Destination of an archive. */
interface Destination {
  readonly folder: string
  /** Number of real folders from the workspace to it. */
  readonly depth: number
  readonly limits?: { readonly maxEntries: number; readonly maxBytes: number }
}

/** Result of unpacking. */
export interface Unpacked {
  readonly entries: number
  readonly bytes: number
  readonly refused: readonly { readonly path: string; readonly reason: string }[]
  /** Refused entries beyond the list. */
  readonly refusedMore: number
}

/** The file whose bytes are being received. */
type Arriving =
  /** A small file in the batch, from this position. */
  | { readonly kind: 'held'; readonly from: number }
  | { readonly kind: 'open'; readonly file: OpenPut; at: number }
  /** A refused file, whose bytes are skipped. */
  | { readonly kind: 'passed' }

interface Current {
  readonly entry: TarEntry
  readonly path: string
  readonly arriving: Arriving
}

/**
 * Unpacks an archive into a folder. Names that lead outside are refused, links are created only when they stay in the workspace
 * and are never followed, and devices are not created. Of two entries with the same name the last one wins. Throws when the
 * archive is invalid or the disk is full; entries written before remain.
 */
class Unpacker {
  readonly #transfer: TransferFiles
  readonly #folder: string
  readonly #depth: number
  readonly #limits: Required<Destination>['limits']
  readonly #held = new PutBatch()
  #current: Current | undefined
  readonly #folders = new Map<string, Put>()
  #entries = 0
  #bytes = 0
  readonly #refused: { path: string; reason: string }[] = []
  #refusedMore = 0
  #begun = 0
  #arrivedBytes = 0

  constructor(transfer: TransferFiles, { folder, depth, limits = LIMITS }: Destination) {
    this.#transfer = transfer
    this.#limits = limits
    this.#folder = folder
    this.#depth = depth
  }

  /** Processes the next event; returns a promise when there is something to wait for. */
  take(event: TarEvent): Promise<void> | undefined {
    switch (event.kind) {
      case 'entry':
        return this.#begin(event.entry)
      case 'bytes':
        return this.#write(event.bytes)
      case 'complete':
        return this.#complete()
      case 'note':
        this.#refuse(event.note.path, 'it was left out when it was packed')
        return undefined
      case 'end':
        return undefined
    }
  }

  /** Finishes: sets the modes and times of folders, inner ones first. */
  async finish(): Promise<Unpacked> {
    const inwards = [...this.#folders.values()].toSorted(
      (a, b) => b.path.split('/').length - a.path.split('/').length,
    )
    for (const folder of inwards) await this.#hold(folder)
    await this.#flush()
    return {
      entries: this.#entries,
      bytes: this.#bytes,
      refused: this.#refused,
      refusedMore: this.#refusedMore,
    }
  }

  /** Removes an incomplete file. */
  async discard(): Promise<void> {
    const current = this.#current
    this.#current = undefined
    if (current?.arriving.kind !== 'open') return
    const { file } = current.arriving
    await this.#transfer.putMany(
      this.#folder,
      [{ kind: 'dropped', path: current.path, file }],
      new Uint8Array(0),
    )
    await closeFd(file.fd)
  }

  #begin(entry: TarEntry): Promise<void> | undefined {
    this.#begun += 1
    const { maxEntries } = this.#limits
    if (this.#begun > maxEntries)
      throw new SandwireError('file_too_large', `Cannot unpack the archive: more than ${maxEntries} entries`)
    const parts = readArchivePath(entry.path)
    const path = 'refused' in parts ? '' : parts.join('/')
    const why = 'refused' in parts ? parts.refused : this.#objectionTo(entry, parts)
    // The destination itself exists and is not changed.
    if (why === undefined && path === '') this.#current = { entry, path, arriving: { kind: 'passed' } }
    else if (why !== undefined) this.#pass(entry, why)
    else if (entry.kind === 'file' && entry.sizeBytes > SMALL_BYTES) return this.#open(entry, path)
    else this.#current = { entry, path, arriving: { kind: 'held', from: this.#held.length } }
    return undefined
  }

  #objectionTo({ kind, target = '' }: TarEntry, parts: readonly string[]): string | undefined {
    switch (kind) {
      case 'file':
      case 'folder':
        return parts.length === 0 && kind === 'file' ? 'it has no name' : undefined
      case 'link':
        return staysBeneath(target, this.#depth + parts.length - 1) ? undefined : 'the link leads outside'
      case 'hard-link': {
        const linked = readArchivePath(target)
        return 'refused' in linked || linked.length === 0 ? 'the link leads outside' : undefined
      }
      case 'special':
        return 'neither a file nor a folder'
    }
  }

  #pass(entry: TarEntry, why: string): void {
    this.#refuse(entry.path, why)
    this.#current = { entry, path: '', arriving: { kind: 'passed' } }
  }

  #refuse(path: string, reason: string): void {
    if (this.#refused.length < MAX_TOLD) this.#refused.push({ path, reason })
    else this.#refusedMore += 1
  }

  async #open(entry: TarEntry, path: string): Promise<void> {
    // Earlier entries must be written first, and a later entry of the same name must win.
    await this.#flush()
    try {
      const file = await this.#transfer.openPut(this.#folder, path)
      this.#current = { entry, path, arriving: { kind: 'open', file, at: 0 } }
    } catch (caught) {
      const error = SandwireError.from(caught)
      if (error.code === 'disk_full' || error.code === 'internal') throw error
      this.#pass(entry, error.message)
    }
  }

  #write(bytes: Uint8Array): Promise<void> | undefined {
    const arriving = this.#current?.arriving
    this.#arrivedBytes += bytes.length
    const { maxBytes } = this.#limits
    if (this.#arrivedBytes > maxBytes)
      throw new SandwireError('file_too_large', `Cannot unpack the archive: more than ${maxBytes} bytes`)
    if (arriving?.kind === 'held') this.#held.append(bytes)
    return arriving?.kind === 'open' ? writeLarge(arriving, bytes) : undefined
  }

  #complete(): Promise<void> | undefined {
    const current = this.#current
    if (current === undefined) return undefined
    const { entry, path, arriving } = current
    if (arriving.kind === 'open') return this.#completeLarge(current, arriving)
    this.#current = undefined
    if (arriving.kind === 'passed') return undefined
    const { kind, mode, mtimeNs } = entry
    if (kind === 'folder') this.#folders.set(path, { kind: 'settled', path, mode, mtimeNs })
    this.#bytes += this.#held.length - arriving.from
    return this.#hold(putOf(entry, path, { from: arriving.from, to: this.#held.length }))
  }

  async #completeLarge(
    { entry, path }: Current,
    { file, at }: Extract<Arriving, { kind: 'open' }>,
  ): Promise<void> {
    this.#bytes += at
    await this.#hold({ kind: 'written', path, file, mode: entry.mode, mtimeNs: entry.mtimeNs })
    await this.#flush()
    this.#current = undefined
    await closeFd(file.fd)
  }

  #hold(item: Put): Promise<void> | undefined {
    return this.#held.add(item) ? this.#flush() : undefined
  }

  async #flush(): Promise<void> {
    const { items, bytes } = this.#held.take()
    if (items.length === 0) return
    const refusals = await this.#transfer.putMany(this.#folder, items, bytes)
    for (const [at, item] of items.entries()) this.#settle(item, refusals[at])
  }

  #settle(item: Put, refusal: Refusal | undefined): void {
    if (refusal !== undefined) this.#refuse(item.path, refusal.why)
    else if (item.kind !== 'settled') this.#entries += 1
  }
}

async function writeLarge(arriving: Extract<Arriving, { kind: 'open' }>, bytes: Uint8Array): Promise<void> {
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

function putOf(entry: TarEntry, path: string, span: Span): Put {
  const { kind, mode, mtimeNs, target = '' } = entry
  switch (kind) {
    case 'file':
      return { kind: 'file', path, mode, mtimeNs, ...span }
    case 'folder':
      return { kind: 'folder', path }
    case 'link':
      return { kind: 'link', path, target, mtimeNs }
    case 'hard-link': {
      const parts = readArchivePath(target)
      return { kind: 'hard-link', path, target: 'refused' in parts ? '' : parts.join('/') }
    }
    case 'special':
      throw new SandwireError('internal', 'Cannot unpack the archive')
  }
}

/** Unpacks a tar stream into a folder of the workspace. */
export async function unpack(
  archive: AsyncIterable<Uint8Array>,
  transfer: TransferFiles,
  destination: Destination,
): Promise<Unpacked> {
  const unpacker = new Unpacker(transfer, destination)
  const reader = new TarReader()
  try {
    for await (const chunk of archive)
      for (const event of reader.push(chunk)) {
        const working = unpacker.take(event)
        // Most events need no wait, and there are many.
        if (working !== undefined) await working
      }
    reader.end()
    return await unpacker.finish()
  } finally {
    await unpacker.discard()
  }
}
