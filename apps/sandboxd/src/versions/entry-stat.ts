import { S_IFDIR, S_IFLNK, S_IFMT, S_IFREG } from '../workspace/beneath/constants.ts'
import { STATX_BYTES } from '../workspace/beneath/statx.ts'
import { statFd } from '../workspace/beneath/system-calls.ts'
import { FixedBuffer, statName } from './system-calls.ts'

const S_IFIFO = 0o010000
/** Field offsets of `struct statx`. */
const NLINK_AT = 16
const MODE_AT = 28
const INO_AT = 32
const SIZE_AT = 40
const BLOCKS_AT = 48
const CTIME_AT = 96
const MTIME_AT = 112
const DEVICE_AT = 136
const SECTOR_BYTES = 512

export type EntryKind = 'file' | 'folder' | 'link' | 'fifo'

/** The status of one name, read into a buffer that is used again for the next one. */
export class EntryStat {
  readonly buffer = new FixedBuffer(STATX_BYTES)
  readonly #words = new Int32Array(this.buffer.view.buffer)
  readonly #view = this.buffer.view
  /** Two halves of a hash over what changes with the file; set by `hash`. */
  high = 0
  low = 0

  /** Undefined for sockets and devices, which are not saved. */
  get kind(): EntryKind | undefined {
    switch (this.#view.getUint16(MODE_AT, true) & S_IFMT) {
      case S_IFREG:
        return 'file'
      case S_IFDIR:
        return 'folder'
      case S_IFLNK:
        return 'link'
      case S_IFIFO:
        return 'fifo'
    }
    return undefined
  }

  get mode(): number {
    return this.#view.getUint16(MODE_AT, true) & 0o7777
  }

  get linkCount(): number {
    return this.#view.getUint32(NLINK_AT, true)
  }

  /** Inode number; file systems that use more than 53 bits of it are not known. */
  get inode(): number {
    return Number(this.#view.getBigUint64(INO_AT, true))
  }

  get sizeBytes(): number {
    return this.#view.getUint32(SIZE_AT, true) + this.#view.getUint32(SIZE_AT + 4, true) * 2 ** 32
  }

  /** True when fewer bytes are allocated than the file is long. */
  get isSparse(): boolean {
    const sectors =
      this.#view.getUint32(BLOCKS_AT, true) + this.#view.getUint32(BLOCKS_AT + 4, true) * 2 ** 32
    return sectors * SECTOR_BYTES < this.sizeBytes
  }

  get seconds(): number {
    return this.#seconds(MTIME_AT)
  }

  get nanos(): number {
    return this.#view.getUint32(MTIME_AT + 8, true)
  }

  /** Time of the last change of content or attributes, in milliseconds since the epoch. */
  get changedMs(): number {
    return this.#seconds(CTIME_AT) * 1000 + this.#view.getUint32(CTIME_AT + 8, true) / 1e6
  }

  /** Whole seconds of a time, which may be negative. */
  #seconds(at: number): number {
    return this.#view.getUint32(at, true) + this.#view.getInt32(at + 4, true) * 2 ** 32
  }

  get device(): number {
    return this.#view.getUint32(DEVICE_AT, true) * 2 ** 32 + this.#view.getUint32(DEVICE_AT + 4, true)
  }

  /** Hashes mode, inode, size, ctime and mtime. Only the sandbox's own user could make two that are equal. */
  hash(): void {
    const words = this.#words
    let high = 0x9e3779b9 | 0
    let low = 0x85ebca6b | 0
    for (let at = 7; at < 12; at += 1) {
      const word = words[at] ?? 0
      high = Math.imul(high ^ word, 0x01000193) + (low >>> 7)
      low = Math.imul(low + word, 0xcc9e2d51 | 0) ^ (high >>> 15)
    }
    for (let at = 24; at < 31; at += 1) {
      const word = words[at] ?? 0
      high = Math.imul(high ^ word, 0x01000193) + (low >>> 7)
      low = Math.imul(low + word, 0xcc9e2d51 | 0) ^ (high >>> 15)
    }
    this.high = high | 0
    this.low = low | 0
  }
}

/** The device that an open folder is on. */
export function deviceOf(fd: number): number {
  const name = new FixedBuffer(2)
  name.bytes.write('.\0')
  const stat = new EntryStat()
  statName(fd, name.address, stat.buffer)
  return stat.device
}

/** Permission bits of an open file. */
export function modeOf(fd: number): number {
  const stat = Buffer.alloc(STATX_BYTES)
  return statFd(fd, stat) < 0 ? -1 : stat.readUInt16LE(MODE_AT) & 0o7777
}
