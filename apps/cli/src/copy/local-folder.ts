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
  renameSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs'
import { randomBytes } from 'node:crypto'
import { staysBeneath, type TarEntry } from '@sandwire/tar'
import { joinLocalPath, type LocalPath } from './local-entries.ts'

/** Nothing is written there, and this is why. */
export class WriteRefusedError extends Error {}

/** What is known of a file before it takes its place. */
export type Attributes = Pick<TarEntry, 'mode' | 'mtimeNs'>

/** A file on its way into a folder, under a name that nobody asks for. */
export interface PendingFile {
  readonly write: (bytes: Uint8Array) => void
  /** Puts it into its place at once. */
  readonly commit: (attributes: Attributes) => void
  readonly discard: () => void
}

/** What others may not do with a file; setuid and its kin are never taken over. */
const PERMISSIONS = 0o777
/** What a folder allows its owner while things are put into it. */
const WORKABLE = 0o700
const NEW_FILE = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW
const NS_PER_SECOND = 1e9

function secondsOf(mtimeNs: string): number {
  return Number(mtimeNs) / NS_PER_SECOND
}

function kindAt(at: LocalPath): 'nothing' | 'folder' | 'replaceable' | 'special' {
  const stat = lstatSync(at, { throwIfNoEntry: false })
  if (stat === undefined) return 'nothing'
  if (stat.isDirectory()) return 'folder'
  return stat.isFile() || stat.isSymbolicLink() ? 'replaceable' : 'special'
}

/** Files and links give way; folders, devices, pipes and sockets do not. */
function checkReplaceable(place: LocalPath): void {
  const kind = kindAt(place)
  if (kind === 'folder') throw new WriteRefusedError('a folder is in its place')
  if (kind === 'special')
    throw new WriteRefusedError('something that is neither a file nor a folder is in its place')
}

/**
 * A folder of this machine into which somebody else's files are put. Nothing outside of it is touched, whatever they are
 * called and whatever links are among them: every folder on the way is looked at and must be a real one, files are written under
 * a name of our own and renamed, which replaces a link and never follows it.
 */
export class LocalFolder implements Disposable {
  readonly #base: LocalPath
  /** Folders that were seen to be real. Only what is done here could change that. */
  readonly #seen = new Set<string>()
  readonly #unfinished = new Set<() => void>()
  readonly #folders = new Map<
    string,
    { readonly parts: readonly string[]; readonly attributes: Attributes }
  >()

  constructor(base: LocalPath) {
    this.#base = base
  }

  /** Makes a folder, and those on the way. Its mode and time come at the end, when everything is in it. */
  makeFolder(parts: readonly string[], attributes: Attributes): void {
    const at = this.#enter(parts)
    const { mode } = lstatSync(at)
    // One of an earlier copy may let nobody put anything into it.
    if ((mode & WORKABLE) !== WORKABLE) chmodSync(at, (mode & PERMISSIONS) | WORKABLE)
    this.#folders.set(parts.join('/'), { parts, attributes })
  }

  openFile(parts: readonly string[]): PendingFile {
    const { folder, place } = this.#placeOf(parts)
    // Before all of it has come.
    checkReplaceable(place)
    const temporary = joinLocalPath(folder, `.sandwire-copy-${randomBytes(8).toString('hex')}`)
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
        this.#replace(temporary, place)
        this.#unfinished.delete(discard)
      },
      discard,
    }
  }

  /** Makes a link whose target stays in the folder. */
  makeLink(parts: readonly string[], target: string, mtimeNs: string): void {
    if (!staysBeneath(target, parts.length - 1)) throw new WriteRefusedError('the link leads outside')
    const { folder, place } = this.#placeOf(parts)
    const temporary = joinLocalPath(folder, `.sandwire-copy-${randomBytes(8).toString('hex')}`)
    symlinkSync(joinLocalPath(Buffer.alloc(0), target).subarray(1), temporary)
    lutimesSync(temporary, secondsOf(mtimeNs), secondsOf(mtimeNs))
    try {
      this.#replace(temporary, place)
    } catch (error) {
      unlinkSync(temporary)
      throw error
    }
  }

  /** Gives folders their modes and times, inner ones first. */
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

  /** A name in a real folder. */
  #placeOf(parts: readonly string[]): { folder: LocalPath; place: LocalPath } {
    const name = parts.at(-1)
    if (name === undefined) throw new WriteRefusedError('it has no name')
    const folder = this.#enter(parts.slice(0, -1))
    return { folder, place: joinLocalPath(folder, name) }
  }

  #enter(parts: readonly string[]): LocalPath {
    const key = parts.join('/')
    const at = joinLocalPath(this.#base, ...parts)
    if (parts.length === 0 || this.#seen.has(key)) return at
    this.#enter(parts.slice(0, -1))
    const kind = kindAt(at)
    if (kind !== 'nothing' && kind !== 'folder')
      throw new WriteRefusedError('something that is no folder is in its way')
    if (kind === 'nothing') mkdirSync(at, WORKABLE)
    this.#seen.add(key)
    return at
  }

  #replace(temporary: LocalPath, place: LocalPath): void {
    checkReplaceable(place)
    renameSync(temporary, place)
  }
}
