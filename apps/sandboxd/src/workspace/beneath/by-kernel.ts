import { closeFd, openAt2 } from './calls.ts'
import { EAGAIN, ENOSYS, EPERM } from './errno.ts'
import { O_DIRECTORY, O_PATH, RESOLVE_BENEATH, RESOLVE_NO_MAGICLINKS } from './flags.ts'
import { resolveByHand } from './by-hand.ts'
import { joinNames } from './path.ts'
import type { Resolve } from './resolver.ts'

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
