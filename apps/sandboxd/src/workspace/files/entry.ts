import { pathFromBytes } from '@sandwire/protocol'
import { closeFd, statAt, statFd } from '../beneath/calls.ts'
import { AT_SYMLINK_NOFOLLOW, O_PATH } from '../beneath/flags.ts'
import type { Root } from '../beneath/root.ts'
import { readStat, STATX_BYTES } from '../beneath/statx.ts'
import type { Entry } from '../files.ts'
import { type ByteName, bytesOfName, cName } from './names.ts'

/**
 * What is known of a name in an open folder; undefined when it is gone, or nobody may know. `stat` is room for one, used again
 * for each name: to give new memory to the kernel costs more than the call.
 */
export function readEntry(folder: number, name: ByteName, stat: Uint8Array): Entry | undefined {
  if (statAt(folder, cName(name), AT_SYMLINK_NOFOLLOW, stat) < 0) return undefined
  return { name: pathFromBytes(bytesOfName(name)), ...readStat(stat) }
}

/** What the link at a path leads to, when that is a file or a folder inside. */
export function readTarget(root: Root, names: readonly Uint8Array[]): Pick<Entry, 'target'> {
  const fd = root.tryOpen(names, O_PATH)
  if (fd < 0) return {}
  const stat = new Uint8Array(STATX_BYTES)
  const result = statFd(fd, stat)
  closeFd(fd)
  if (result < 0) return {}
  const { kind } = readStat(stat)
  return kind === 'file' || kind === 'folder' ? { target: kind } : {}
}
