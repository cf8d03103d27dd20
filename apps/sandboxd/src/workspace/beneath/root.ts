import { SandwireError } from '@sandwire/protocol'
import { chooseResolver, type Resolve } from './resolve.ts'
import { cString, Descriptor, openAt, openAt2, readLinkAt, statAt, statFd } from './system-calls.ts'
import {
  AT_FDCWD,
  AT_SYMLINK_NOFOLLOW,
  EINVAL,
  ELOOP,
  ENOENT,
  ENOSYS,
  EPERM,
  EXDEV,
  O_DIRECTORY,
  O_NOCTTY,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_PATH,
  O_RDONLY,
  RESOLVE_NO_SYMLINKS,
} from './constants.ts'
import { type FileAction, fileError, refusal } from './file-error.ts'
import { namesOf, parsePath, type RelativePath, splitLast } from './path.ts'
import { linksOf, STATX_BYTES } from './statx.ts'

/** A name in an open folder. Everything that is created, moved, replaced or removed is addressed this way, never by a path. */
export interface Slot extends Disposable {
  readonly folder: number
  /** NUL-terminated. */
  readonly name: Uint8Array
  /** The requested path, for messages. */
  readonly path: string
}

/** Links that Linux follows in one path. */
const MAX_LINKS = 40

/** Never blocks on a pipe and never becomes the controlling terminal. */
const READ_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY

/** The root folder of the workspace. It stays open when it is renamed; if it is removed and recreated, the new one is opened. */
export class Root {
  readonly #path: string
  readonly #resolve: Resolve
  #folder: Descriptor

  /** Throws `file_not_found` when the folder does not exist. `resolve` overrides the resolver in tests. */
  constructor(absolutePath: string, resolve?: Resolve) {
    this.#path = absolutePath
    this.#folder = openRoot(absolutePath)
    this.#resolve = resolve ?? chooseResolver(this.#folder.fd)
  }

  get fd(): number {
    const stat = new Uint8Array(STATX_BYTES)
    if (statFd(this.#folder.fd, stat) < 0 || linksOf(stat) > 0) return this.#folder.fd
    const next = openRoot(this.#path)
    this.#folder[Symbol.dispose]()
    this.#folder = next
    return next.fd
  }

  /** Opens a path, whatever its kind. Returns a negative errno on failure. */
  tryOpen(names: readonly Uint8Array[], flags: number): number {
    return this.#resolve(this.fd, names, flags)
  }

  /** Opens a path for reading. The caller checks its kind. */
  openToRead(path: string, action: FileAction): Descriptor {
    return this.#open(parsePath(path), READ_FLAGS, action)
  }

  /** Opens a folder to list it. */
  openFolder(path: string, action: FileAction): Descriptor {
    return this.#open(parsePath(path), READ_FLAGS | O_DIRECTORY, action)
  }

  /** Refers to a file without opening it. */
  openName(path: string, action: FileAction, followsLink: boolean): Descriptor {
    return this.#open(parsePath(path), followsLink ? O_PATH : O_PATH | O_NOFOLLOW, action)
  }

  /** Opens the folder of a path; the name in it need not exist. */
  openSlot(path: string, action: FileAction): Slot {
    const parsed = parsePath(path)
    const split = splitLast(parsed)
    if (split === undefined) throw refusal('path_refused', action, path, 'it does not name a file')
    const folder = this.#open({ text: path, names: split.names }, O_PATH | O_DIRECTORY, action)
    return slotOf(folder, split.last, path)
  }

  /** Like `openSlot`, but follows links at the end of the path: the slot holds a file, a folder or nothing. */
  openSlotFollowingLinks(path: string, action: FileAction): Slot {
    let parsed = parsePath(path)
    for (let links = 0; links <= MAX_LINKS; links += 1) {
      const split = splitLast(parsed)
      if (split === undefined) throw refusal('path_refused', action, path, 'it does not name a file')
      using folder = this.#open({ text: path, names: split.names }, O_PATH | O_DIRECTORY, action)
      const target = readTarget(folder.fd, split.last)
      if (target === undefined) return slotOf(new Descriptor(folder.release()), split.last, path)
      if (target[0] === 0x2f) throw fileError(action, path, -EXDEV)
      // Resolved from the root again, so that the link target is confined like any path.
      parsed = { text: path, names: [...split.names, ...namesOf(target)] }
    }
    throw fileError(action, path, -ELOOP)
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]()
  }

  #open(path: RelativePath, flags: number, action: FileAction): Descriptor {
    const fd = this.tryOpen(path.names, flags)
    if (fd < 0) throw fileError(action, path.text, fd)
    return new Descriptor(fd)
  }
}

function slotOf(folder: Descriptor, last: Uint8Array, path: string): Slot {
  return {
    folder: folder.fd,
    name: cString(last),
    path,
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}

function readTarget(folder: number, last: Uint8Array): Uint8Array | undefined {
  const into = new Uint8Array(4096)
  const size = readLinkAt(folder, cString(last), into)
  return size === -EINVAL || size < 0 ? undefined : into.subarray(0, size)
}

/** Opens the workspace. Its path was resolved at startup; a link that is put there later is not followed. */
function openRoot(absolutePath: string): Descriptor {
  const path = cString(Buffer.from(absolutePath))
  const flags = O_PATH | O_DIRECTORY
  const found = openAt2(AT_FDCWD, path, flags, RESOLVE_NO_SYMLINKS)
  const fd = found === -ENOSYS || found === -EPERM ? openNameByName(absolutePath, flags) : found
  if (fd >= 0) return new Descriptor(fd)
  throw new SandwireError('file_not_found', 'Cannot open the workspace: it was removed', {
    cause: new Error(`errno ${-fd}`),
  })
}

function openNameByName(absolutePath: string, flags: number): number {
  let folder = new Descriptor(openAt(AT_FDCWD, cString(Buffer.from('/')), O_PATH | O_DIRECTORY))
  for (const name of namesOf(Buffer.from(absolutePath))) {
    using above = folder
    const fd = openAt(above.fd, cString(name), O_PATH | O_DIRECTORY | O_NOFOLLOW)
    if (fd < 0) return fd
    folder = new Descriptor(fd)
  }
  using last = folder
  return openAt(last.fd, cString(Buffer.from('.')), flags)
}

/** The status of a slot; undefined when it is empty. */
export function statSlot(slot: Slot, action: FileAction): Uint8Array | undefined {
  const stat = new Uint8Array(STATX_BYTES)
  const result = statAt(slot.folder, slot.name, AT_SYMLINK_NOFOLLOW, stat)
  if (result === -ENOENT) return undefined
  if (result < 0) throw fileError(action, slot.path, result)
  return stat
}
