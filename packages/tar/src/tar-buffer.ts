import { concatBytes } from '@sandwire/bytes'
import { pathToBytes } from '@sandwire/protocol'
import { BLOCK_BYTES, paddingOf, type TarEntry, type TarKind, type TarNote } from './entry.ts'
import { fitsName, fitsTarget, type HeaderBlock, MAX_OCTAL, writeHeader } from './header-block.ts'
import { wholeSeconds, writeSeconds } from './nanoseconds.ts'
import { type PaxRecord, sizeOfRecords, writeRecords } from './pax-records.ts'

/** Prefix of a note, which distinguishes it from other comments. */
export const NOTE_MARK = 'sandwire:'

const TYPES: Readonly<Record<Exclude<TarKind, 'special'>, string>> = {
  file: '0',
  'hard-link': '1',
  link: '2',
  folder: '5',
}
const NOTHING = new Uint8Array(0)
/** Name under which programs without support for extended headers unpack them. */
const EXTENDED_NAME: Uint8Array = new TextEncoder().encode('PaxHeader')
const SLASH = 0x2f
const FIRST_BYTES = 64 * 1024

/** An entry that can be written. */
export type WritableEntry = TarEntry & { readonly kind: Exclude<TarKind, 'special'> }

function nameOf({ path, kind }: TarEntry): Uint8Array {
  const bytes = pathToBytes(path) ?? NOTHING
  return kind === 'folder' && bytes.at(-1) !== SLASH ? concatBytes([bytes, Uint8Array.of(SLASH)]) : bytes
}

/** Values that do not fit into the header block. */
function recordsOf({ name, target, sizeBytes, mtimeSeconds }: HeaderBlock, mtimeNs: string): PaxRecord[] {
  const records: PaxRecord[] = []
  if (!fitsName(name)) records.push(['path', name])
  if (!fitsTarget(target)) records.push(['linkpath', target])
  if (sizeBytes > MAX_OCTAL) records.push(['size', String(sizeBytes)])
  const isWhole = mtimeNs.endsWith('000000000') || mtimeNs === '0'
  if (!isWhole || mtimeSeconds < 0 || mtimeSeconds > MAX_OCTAL) records.push(['mtime', writeSeconds(mtimeNs)])
  return records
}

/** Builds an archive, or the next part of one. */
export class TarBuffer {
  #bytes = new Uint8Array(FIRST_BYTES)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Writes the header of an entry, preceded by an extended header if needed. */
  entry(entry: WritableEntry): void {
    const header: HeaderBlock = {
      name: nameOf(entry),
      mode: entry.mode & 0o7777,
      sizeBytes: entry.kind === 'file' ? entry.sizeBytes : 0,
      mtimeSeconds: wholeSeconds(entry.mtimeNs),
      type: TYPES[entry.kind],
      target: entry.target === undefined ? NOTHING : (pathToBytes(entry.target) ?? NOTHING),
    }
    const records = recordsOf(header, entry.mtimeNs)
    if (records.length > 0) this.#extended('x', records)
    this.#header(header)
  }

  /** Writes the content of an entry and its padding. */
  content(bytes: Uint8Array): void {
    const at = this.#reserve(bytes.length + paddingOf(bytes.length))
    this.#bytes.set(bytes, at)
  }

  /** Writes the padding of content that is sent separately. */
  padding(sizeBytes: number): void {
    this.#reserve(paddingOf(sizeBytes))
  }

  /** Writes a note, which other programs ignore. */
  note({ code, path }: TarNote): void {
    const mark = new TextEncoder().encode(`${NOTE_MARK}${code} `)
    this.#extended('g', [['comment', concatBytes([mark, pathToBytes(path) ?? NOTHING])]])
  }

  /** Writes the end of the archive. */
  end(): void {
    this.#reserve(2 * BLOCK_BYTES)
  }

  /** Returns what was written and clears the buffer. */
  take(): Uint8Array<ArrayBuffer> {
    const written = this.#bytes.subarray(0, this.#length)
    this.#bytes = new Uint8Array(FIRST_BYTES)
    this.#length = 0
    return written
  }

  #extended(type: 'x' | 'g', records: readonly PaxRecord[]): void {
    const sizeBytes = sizeOfRecords(records)
    this.#header({ name: EXTENDED_NAME, mode: 0o644, sizeBytes, mtimeSeconds: 0, type, target: NOTHING })
    const at = this.#reserve(sizeBytes + paddingOf(sizeBytes))
    writeRecords(this.#bytes, at, records)
  }

  #header(header: HeaderBlock): void {
    const at = this.#reserve(BLOCK_BYTES)
    writeHeader(this.#bytes.subarray(at, at + BLOCK_BYTES), header)
  }

  /** Reserves zeroed bytes; returns their offset. */
  #reserve(bytes: number): number {
    const at = this.#length
    const needed = at + bytes
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2))
      larger.set(this.#bytes.subarray(0, at))
      this.#bytes = larger
    }
    this.#length = needed
    return at
  }
}
