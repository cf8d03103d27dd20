import { latin1Bytes } from '@sandwire/version-format'
import { ENOENT } from '../workspace/beneath/constants.ts'
import { readFolder } from '../workspace/beneath/system-calls.ts'
import { isHiddenName } from '../workspace/files/context.ts'
import { EntryStat, type EntryKind } from './entry-stat.ts'
import { FixedBuffer, rewindFolder, statName } from './system-calls.ts'

/** Field offsets of `struct linux_dirent64`. */
const LENGTH_AT = 16
const NAME_AT = 19
const BUFFER_BYTES = 64 * 1024

/** One name of a folder, as found on the disk. */
export interface FoundEntry {
  /** One character per byte. */
  readonly name: string
  readonly kind: EntryKind
  readonly mode: number
  readonly seconds: number
  readonly nanos: number
  readonly sizeBytes: number
  readonly isSparse: boolean
  /** Inode number of a file with several names; 0 otherwise. */
  readonly linkGroup: number
  readonly changedMs: number
  /** Hash of its status, in two halves. */
  readonly high: number
  readonly low: number
}

/** Summary of a folder: equal summaries mean that nothing in it changed. */
export interface FolderSummary {
  readonly high: number
  readonly low: number
  readonly subfolders: readonly string[]
}

/** Which names of a folder are not saved; undefined: none. */
export type ExcludesOf = (folder: string) => ((name: string, isFolder: boolean) => boolean) | undefined

/** Reads folders with as little work per entry as possible: one call per name, and no allocation for files. */
export class FolderScanner {
  readonly #names = new FixedBuffer(BUFFER_BYTES)
  readonly #stat = new EntryStat()
  readonly #excludesOf: ExcludesOf
  readonly #device: number
  /** Summary of the folder that is being read. */
  #high = 0
  #low = 0

  /** Entries on another device are not part of the tree. */
  constructor(device: number, excludesOf: ExcludesOf) {
    this.#device = device
    this.#excludesOf = excludesOf
  }

  /** Hashes names and status of every entry. Returns a negative errno on failure. */
  summarize(fd: number, path: string): FolderSummary | number {
    const subfolders: string[] = []
    const result = this.#each(fd, path, (kind, start, end) => {
      if (kind === 'folder') subfolders.push(this.#names.bytes.toString('latin1', start, end))
    })
    return result < 0 ? result : { high: this.#high, low: this.#low, subfolders }
  }

  /** The summary, and all entries, sorted by the bytes of their names. */
  list(fd: number, path: string): (FolderSummary & { readonly entries: readonly FoundEntry[] }) | number {
    const entries: FoundEntry[] = []
    const result = this.#each(fd, path, (kind, start, end) => {
      entries.push(this.#entry(this.#names.bytes.toString('latin1', start, end), kind))
    })
    if (result < 0) return result
    // Characters are bytes, so this is the order of the bytes. Content that is read in order compresses better.
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    const subfolders = entries.filter(({ kind }) => kind === 'folder').map(({ name }) => name)
    return { high: this.#high, low: this.#low, subfolders, entries }
  }

  /** One name in an open folder; undefined when it is gone or of a kind that is not saved. */
  find(fd: number, name: string): FoundEntry | undefined {
    const terminated = new FixedBuffer(name.length + 1)
    terminated.bytes.set(latin1Bytes(name))
    if (statName(fd, terminated.address, this.#stat.buffer) < 0) return undefined
    this.#stat.hash()
    const { kind } = this.#stat
    return kind === undefined ? undefined : this.#entry(name, kind)
  }

  #entry(name: string, kind: EntryKind): FoundEntry {
    const stat = this.#stat
    return {
      name,
      kind,
      mode: stat.mode,
      seconds: stat.seconds,
      nanos: stat.nanos,
      sizeBytes: stat.sizeBytes,
      isSparse: kind === 'file' && stat.isSparse,
      linkGroup: kind === 'file' && stat.linkCount > 1 ? stat.inode : 0,
      changedMs: stat.changedMs,
      high: stat.high,
      low: stat.low,
    }
  }

  /** Adds the current entry to the summary; returns where its name ends. */
  #mix(nameStart: number): number {
    const { bytes } = this.#names
    let name = 0x811c9dc5 | 0
    let at = nameStart
    for (let byte = bytes[at] ?? 0; byte !== 0; byte = bytes[at] ?? 0) {
      name = Math.imul(name ^ byte, 0x01000193)
      at += 1
    }
    this.#high = (Math.imul(this.#high ^ name, 0x85ebca6b | 0) + this.#stat.high) | 0
    this.#low = Math.imul(this.#low + this.#stat.low, 0xc2b2ae35 | 0) ^ name
    return at
  }

  #each(
    fd: number,
    path: string,
    visit: (kind: EntryKind, nameStart: number, nameEnd: number) => void,
  ): number {
    const { bytes, view, address } = this.#names
    const stat = this.#stat
    const isExcluded = this.#excludesOf(path)
    this.#high = 0
    this.#low = 0
    const rewound = rewindFolder(fd)
    if (rewound < 0) return rewound
    for (;;) {
      const size = readFolder(fd, bytes)
      if (size <= 0) return size
      for (let at = 0; at < size; at += view.getUint16(at + LENGTH_AT, true)) {
        const start = at + NAME_AT
        if (isDots(bytes, start)) continue
        const result = statName(fd, address + start, stat.buffer)
        // Gone since the folder was read.
        if (result === -ENOENT) continue
        if (result < 0) return result
        const kind = stat.kind
        if (kind === undefined || stat.device !== this.#device) continue
        if (isExcluded !== undefined || bytes[start] === DOT) {
          const name = bytes.toString('latin1', start, bytes.indexOf(0, start))
          if (isHiddenName(name) || isExcluded?.(name, kind === 'folder') === true) continue
        }
        stat.hash()
        visit(kind, start, this.#mix(start))
      }
    }
  }
}

const DOT = 0x2e

function isDots(bytes: Buffer, at: number): boolean {
  if (bytes[at] !== DOT) return false
  return bytes[at + 1] === 0 || (bytes[at + 1] === DOT && bytes[at + 2] === 0)
}
