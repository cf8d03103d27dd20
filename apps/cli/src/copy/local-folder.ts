import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  futimesSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs'
import { randomBytes } from 'node:crypto'
import { staysBeneath, type TarEntry } from '@sandwire/tar'
import { joinLocalPath, type LocalPath } from './local-entries.ts'

/** The entry cannot be written, for this reason. */
export class WriteRefusedError extends Error {}

/** Mode and modification time. */
export type Attributes = Pick<TarEntry, 'mode' | 'mtimeNs'>

/** A file that is being written under a temporary name. */
export interface PendingFile {
  readonly write: (bytes: Uint8Array) => void
  /** Renames it to its final name. */
  readonly commit: (attributes: Attributes) => void
  readonly discard: () => void
}

/** Permission bits; setuid, setgid and sticky are dropped. */
const PERMISSIONS = 0o777
/** Mode that the owner needs to write into a folder. */
const OWNER_ACCESS = 0o700
const NEW_FILE = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW
const NS_PER_SECOND = 1e9

/** Temporary names, and the age at which one belongs to a copy that was killed. */
const TEMPORARY_PREFIX = '.sandwire-copy-'
const TEMPORARY_NAME = /^\.sandwire-copy-[0-9a-f]{16}$/
const ABANDONED_MS = 24 * 60 * 60 * 1000

function temporaryName(): string {
  return `${TEMPORARY_PREFIX}${randomBytes(8).toString('hex')}`
}

/** Removes temporary files that killed copies left in a folder. Nothing fails when that is not possible. */
function removeAbandoned(folder: LocalPath, nowMs: number): void {
  try {
    const names = readdirSync(folder).filter((name) => TEMPORARY_NAME.test(name))
    for (const path of names.map((name) => joinLocalPath(folder, name))) {
      // The time of the last change: a copy sets the modification time itself.
      const { ctimeMs } = lstatSync(path)
      if (kindAt(path) === 'replaceable' && nowMs - ctimeMs > ABANDONED_MS) unlinkSync(path)
    }
  } catch {
    // The folder cannot be listed, or another copy removes them now.
  }
}

function secondsOf(mtimeNs: string): number {
  return Number(mtimeNs) / NS_PER_SECOND
}

function kindAt(at: LocalPath): 'nothing' | 'folder' | 'replaceable' | 'special' {
  const stat = lstatSync(at, { throwIfNoEntry: false })
  if (stat === undefined) return 'nothing'
  if (stat.isDirectory()) return 'folder'
  return stat.isFile() || stat.isSymbolicLink() ? 'replaceable' : 'special'
}

/** Files and links can be replaced; folders, devices, pipes and sockets cannot. */
function checkReplaceable(target: LocalPath): void {
  const kind = kindAt(target)
  if (kind === 'folder') throw new WriteRefusedError('it is a folder')
  if (kind === 'special') throw new WriteRefusedError('a special file is in the way')
}

/**
 * A local folder that receives untrusted entries. Nothing outside of it is changed, whatever their names and links: every
 * parent folder must be a real folder, and files are written under a temporary name and renamed, which replaces links
 * instead of following them.
 */
export class LocalFolder implements Disposable {
  readonly #base: LocalPath
  readonly #nowMs: number
  /** Folders that are known to be real folders. */
  readonly #seen = new Set<string>()
  /** Folders without abandoned temporary files. */
  readonly #swept = new Set<string>()
  readonly #unfinished = new Set<() => void>()
  readonly #folders = new Map<
    string,
    { readonly parts: readonly string[]; readonly attributes: Attributes }
  >()

  constructor(base: LocalPath, nowMs = Date.now()) {
    this.#base = base
    this.#nowMs = nowMs
  }

  /** Creates a folder and its parents. Mode and time are set by `finish`, after its contents. */
  makeFolder(parts: readonly string[], attributes: Attributes): void {
    const at = this.#enter(parts)
    const { mode } = lstatSync(at)
    // A folder of an earlier copy may be read-only.
    if ((mode & OWNER_ACCESS) !== OWNER_ACCESS) chmodSync(at, (mode & PERMISSIONS) | OWNER_ACCESS)
    this.#folders.set(parts.join('/'), { parts, attributes })
  }

  openFile(parts: readonly string[]): PendingFile {
    const { folder, target } = this.#targetOf(parts)
    // Checked before the content is received.
    checkReplaceable(target)
    const temporary = joinLocalPath(folder, temporaryName())
    const fd = openSync(temporary, NEW_FILE, 0o600)
    let isOpen = true
    const close = (): void => {
      if (isOpen) closeSync(fd)
      isOpen = false
    }
    const discard = (): void => {
      close()
      if (this.#unfinished.delete(discard)) unlinkSync(temporary)
    }
    this.#unfinished.add(discard)
    return {
      write: (bytes) => {
        for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at)
      },
      commit: ({ mode, mtimeNs }) => {
        fchmodSync(fd, mode & PERMISSIONS)
        futimesSync(fd, secondsOf(mtimeNs), secondsOf(mtimeNs))
        close()
        this.#replace(temporary, target)
        this.#unfinished.delete(discard)
      },
      discard,
    }
  }

  /** Creates a link that stays inside the folder. */
  makeLink(parts: readonly string[], linkTarget: string, mtimeNs: string): void {
    if (!staysBeneath(linkTarget, parts.length - 1)) throw new WriteRefusedError('the link points outside')
    const { folder, target } = this.#targetOf(parts)
    const temporary = joinLocalPath(folder, temporaryName())
    symlinkSync(joinLocalPath(Buffer.alloc(0), linkTarget).subarray(1), temporary)
    lutimesSync(temporary, secondsOf(mtimeNs), secondsOf(mtimeNs))
    try {
      this.#replace(temporary, target)
    } catch (error) {
      unlinkSync(temporary)
      throw error
    }
  }

  /** Sets modes and times of folders, inner ones first. */
  finish(): void {
    const inwards = [...this.#folders.values()].toSorted((a, b) => b.parts.length - a.parts.length)
    for (const { parts, attributes } of inwards) {
      const at = this.#enter(parts)
      chmodSync(at, attributes.mode & PERMISSIONS)
      utimesSync(at, secondsOf(attributes.mtimeNs), secondsOf(attributes.mtimeNs))
    }
    this.#folders.clear()
  }

  /** Removes what is not finished. */
  [Symbol.dispose](): void {
    for (const discard of this.#unfinished) discard()
  }

  /** The parent folder and path of an entry. */
  #targetOf(parts: readonly string[]): { folder: LocalPath; target: LocalPath } {
    const name = parts.at(-1)
    if (name === undefined) throw new WriteRefusedError('it has no name')
    const folder = this.#enter(parts.slice(0, -1))
    const key = parts.slice(0, -1).join('/')
    if (!this.#swept.has(key)) removeAbandoned(folder, this.#nowMs)
    this.#swept.add(key)
    return { folder, target: joinLocalPath(folder, name) }
  }

  #enter(parts: readonly string[]): LocalPath {
    const key = parts.join('/')
    const at = joinLocalPath(this.#base, ...parts)
    if (parts.length === 0 || this.#seen.has(key)) return at
    this.#enter(parts.slice(0, -1))
    const kind = kindAt(at)
    if (kind !== 'nothing' && kind !== 'folder') throw new WriteRefusedError('a parent is not a folder')
    if (kind === 'nothing') mkdirSync(at, OWNER_ACCESS)
    this.#seen.add(key)
    return at
  }

  #replace(temporary: LocalPath, target: LocalPath): void {
    checkReplaceable(target)
    renameSync(temporary, target)
  }
}
