import { statFd } from '../beneath/calls.ts'
import { fileError } from '../beneath/file-error.ts'
import { parsePath } from '../beneath/path.ts'
import { readStat, STATX_BYTES } from '../beneath/statx.ts'
import type { Entry, FileStat } from '../files.ts'
import { readTarget } from './entry.ts'
import type { Ground } from './job.ts'

/** What is at a path: of a link itself, with what it leads to, unless it is to be followed. */
export function stat({ root }: Ground, path: string, followsLink: boolean): FileStat & Pick<Entry, 'target'> {
  using name = root.openName(path, 'read', followsLink)
  const found = statOpen(name.fd, path)
  return found.kind === 'link' ? { ...found, ...readTarget(root, parsePath(path).names) } : found
}

/** What an open file is. */
export function statOpen(fd: number, path: string): FileStat {
  const into = new Uint8Array(STATX_BYTES)
  const result = statFd(fd, into)
  if (result < 0) throw fileError('read', path, result)
  return readStat(into)
}
