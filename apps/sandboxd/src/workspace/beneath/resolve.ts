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
 * Opens a path beneath a folder. `flags` are those of `openat`; with `O_NOFOLLOW` a link at the end is not followed. Returns a
 * descriptor or a negative errno: EXDEV for a path that leaves the folder, ELOOP for too many links.
 */
export type Resolve = (root: number, names: readonly Uint8Array[], flags: number) => number

/** Attempts while folders on the path are being renamed. */
const TRIES = 16

/** Resolves the path in the kernel, which confines `..` and links to the root during resolution (Linux 5.6). */
export const resolveWithOpenat2: Resolve = (root, names, flags) => {
  const path = joinNames(names)
  for (let tries = 0; tries < TRIES; tries += 1) {
    const fd = openAt2(root, path, flags, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
    // The kernel could not verify a `..`, because a folder was renamed at the same time.
    if (fd !== -EAGAIN) return fd
  }
  return resolveStepwise(root, names, flags)
}

/** Uses `openat2` unless the kernel is older or a seccomp filter denies it. */
export function chooseResolver(root: number): Resolve {
  const fd = openAt2(root, joinNames([]), O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
  if (fd >= 0) closeFd(fd)
  return fd === -ENOSYS || fd === -EPERM ? resolveStepwise : resolveWithOpenat2
}

/** Links that Linux follows in one path. */
const MAX_LINKS = 40
/** Attempts on a name that alternates between a link and something else. */
const MAX_ATTEMPTS = 64
const MAX_TARGET_BYTES = 4096
const SLASH = 0x2f

/**
 * Resolves the path name by name, for kernels without `openat2`. Every folder is opened relative to its parent without following
 * links. A link is read and its target resolved in the same way. `..` returns to the parent that is still open and never asks
 * the file system. So an entry that is replaced during resolution cannot lead outside.
 */
export const resolveStepwise: Resolve = (root, names, flags) => {
  const walk = new Walk(root)
  try {
    return walk.run(names, flags)
  } finally {
    walk.close()
  }
}

class Walk {
  readonly #root: number
  /** Open folders, the innermost last. */
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

  /** Resolves one name; `flags` are given for the last one, which is opened. */
  #step(name: Uint8Array, flags: number | undefined): 'on' | number {
    const followsLink = flags === undefined || (flags & O_NOFOLLOW) === 0
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
      const target = followsLink ? this.#readLink(name) : undefined
      if (typeof target === 'number') return target
      if (target !== undefined) return this.#follow(target)
      const fd = openAt(this.#folder, name, (flags ?? O_PATH | O_DIRECTORY) | O_NOFOLLOW)
      // It may have become a link since it was checked.
      if (followsLink && this.#isLinkNow(fd, name)) continue
      if (fd < 0 || flags !== undefined) return fd
      this.#entered.push(fd)
      return 'on'
    }
    return -ELOOP
  }

  /** The target of a link; undefined for anything else; or a negative errno. */
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
