import {
  EAGAIN,
  EINVAL,
  ELOOP,
  ENAMETOOLONG,
  ENOENT,
  ENOSYS,
  ENOTDIR,
  EPERM,
  EXDEV,
  O_DIRECTORY,
  O_NOFOLLOW,
  O_PATH,
  RESOLVE_BENEATH,
  RESOLVE_NO_MAGICLINKS,
  S_IFLNK,
  S_IFMT,
} from './constants.ts'
import { isParent, joinNames, namesOf } from './path.ts'
import { modeOf, STATX_BYTES } from './statx.ts'
import { closeFd, cString, openAt, openAt2, readLinkAt, statFd } from './system-calls.ts'

/**
 * Opens what a path leads to, beneath a folder. `flags` are those of `openat`; with `O_NOFOLLOW` a link at the very end is not
 * followed. Returns a descriptor or a negative errno: EXDEV for what leads out, ELOOP for links without an end.
 */
export type Resolve = (root: number, names: readonly Uint8Array[], flags: number) => number

/** How often a path is asked for again while somebody renames folders on its way up. */
const TRIES = 16

/** Lets the kernel find the path, which holds `..` and links to the root while it goes (Linux 5.6). */
export const resolveByKernel: Resolve = (root, names, flags) => {
  const path = joinNames(names)
  for (let tries = 0; tries < TRIES; tries += 1) {
    const fd = openAt2(root, path, flags, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
    // It could not tell whether a `..` stayed inside, because something was renamed meanwhile.
    if (fd !== -EAGAIN) return fd
  }
  return resolveByHand(root, names, flags)
}

/** The kernel where it can, and the slower way where it cannot: it may be older, or a filter may not let it. */
export function chooseResolver(root: number): Resolve {
  const fd = openAt2(root, joinNames([]), O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
  if (fd >= 0) closeFd(fd)
  return fd === -ENOSYS || fd === -EPERM ? resolveByHand : resolveByKernel
}

/** As many links as Linux follows on the way of one path. */
const MAX_LINKS = 40
/** How often a name is looked at again that was a link one moment and none the next. */
const MAX_LOOKS = 64
const MAX_TARGET_BYTES = 4096
const SLASH = 0x2f

/**
 * Finds the path name by name, for kernels without `openat2`. Every folder is opened from the one before without following
 * links; a link is read, and its text walked in the same way; `..` goes back to the folder it was entered from, which is still
 * open, and never asks the file system. So nothing that is swapped meanwhile leads out.
 */
export const resolveByHand: Resolve = (root, names, flags) => {
  const walk = new Walk(root)
  try {
    return walk.run(names, flags)
  } finally {
    walk.close()
  }
}

class Walk {
  readonly #root: number
  /** Folders that were entered, the innermost last. */
  readonly #entered: number[] = []
  #pending: Uint8Array[] = []
  #links = 0

  constructor(root: number) {
    this.#root = root
  }

  run(names: readonly Uint8Array[], flags: number): number {
    this.#pending = names.toReversed()
    for (;;) {
      const name = this.#pending.pop()
      if (name === undefined) return openAt(this.#folder, cString(Buffer.from('.')), flags)
      const isLast = this.#pending.length === 0
      const result = isParent(name) ? this.#leave() : this.#step(cString(name), isLast ? flags : undefined)
      if (result !== 'on') return result
    }
  }

  close(): void {
    for (const fd of this.#entered) closeFd(fd)
  }

  get #folder(): number {
    return this.#entered.at(-1) ?? this.#root
  }

  #leave(): 'on' | number {
    const fd = this.#entered.pop()
    if (fd === undefined) return -EXDEV
    closeFd(fd)
    return 'on'
  }

  /** Takes one name; `flags` are there for the last one, which is what is opened. */
  #step(name: Uint8Array, flags: number | undefined): 'on' | number {
    const followsLink = flags === undefined || (flags & O_NOFOLLOW) === 0
    for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
      const target = followsLink ? this.#readLink(name) : undefined
      if (typeof target === 'number') return target
      if (target !== undefined) return this.#follow(target)
      const fd = openAt(this.#folder, name, (flags ?? O_PATH | O_DIRECTORY) | O_NOFOLLOW)
      // It may have become a link since it was looked at.
      if (followsLink && this.#isLinkNow(fd, name)) continue
      if (fd < 0 || flags !== undefined) return fd
      this.#entered.push(fd)
      return 'on'
    }
    return -ELOOP
  }

  /** The text of a link, undefined for what is none, or a negative errno. */
  #readLink(name: Uint8Array): Uint8Array | number | undefined {
    const into = new Uint8Array(MAX_TARGET_BYTES)
    const size = readLinkAt(this.#folder, name, into)
    if (size === -EINVAL) return undefined
    if (size < 0) return size
    return size === MAX_TARGET_BYTES ? -ENAMETOOLONG : into.subarray(0, size)
  }

  #isLinkNow(fd: number, name: Uint8Array): boolean {
    if (fd === -ELOOP) return true
    if (fd === -ENOTDIR) return typeof this.#readLink(name) === 'object'
    if (fd < 0) return false
    const stat = new Uint8Array(STATX_BYTES)
    if (statFd(fd, stat) < 0 || (modeOf(stat) & S_IFMT) !== S_IFLNK) return false
    closeFd(fd)
    return true
  }

  #follow(target: Uint8Array): 'on' | number {
    this.#links += 1
    if (this.#links > MAX_LINKS) return -ELOOP
    if (target.length === 0) return -ENOENT
    if (target[0] === SLASH) return -EXDEV
    this.#pending.push(...namesOf(target).toReversed())
    return 'on'
  }
}
