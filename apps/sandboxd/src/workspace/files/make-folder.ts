import { cString, makeFolderAt, openAt } from '../beneath/calls.ts'
import { Descriptor } from '../beneath/descriptor.ts'
import { EEXIST, ENOENT } from '../beneath/errno.ts'
import { fileError } from '../beneath/file-error.ts'
import { O_DIRECTORY, O_NOFOLLOW, O_PATH } from '../beneath/flags.ts'
import { parsePath } from '../beneath/path.ts'
import type { Root } from '../beneath/root.ts'
import type { Ground } from './job.ts'

/** What folders are made with, less the umask. */
const FOLDER_MODE = 0o777

export interface FolderOptions {
  readonly makesParents: boolean
  readonly mode?: number
}

/** Makes a folder; one that is there already is enough when parents are made as well. */
export function makeFolder({ root }: Ground, path: string, options: FolderOptions): void {
  const mode = (options.mode ?? FOLDER_MODE) & 0o777
  if (options.makesParents) {
    using _ = ensureFolder(root, path, parsePath(path).names, mode)
    return
  }
  using slot = root.openSlot(path, 'make')
  const result = makeFolderAt(slot.folder, slot.name, mode)
  if (result < 0) throw fileError('make', path, result)
}

/** Makes what is missing of the folders of a path, and opens the last one. */
export function ensureFolder(
  root: Root,
  path: string,
  names: readonly Uint8Array[],
  mode = FOLDER_MODE,
): Descriptor {
  const whole = root.tryOpen(names, O_PATH | O_DIRECTORY)
  if (whole >= 0) return new Descriptor(whole)
  const last = names.at(-1)
  if (whole !== -ENOENT || last === undefined) throw fileError('make', path, whole)
  using parent = ensureFolder(root, path, names.slice(0, -1))
  const made = makeFolderAt(parent.fd, cString(last), mode)
  if (made < 0 && made !== -EEXIST) throw fileError('make', path, made)
  const fd = openAt(parent.fd, cString(last), O_PATH | O_DIRECTORY | O_NOFOLLOW)
  if (fd < 0) throw fileError('make', path, fd)
  return new Descriptor(fd)
}
