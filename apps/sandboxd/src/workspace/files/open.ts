import { refusal } from '../beneath/file-error.ts'
import type { OpenFile } from '../files.ts'
import type { Ground } from './job.ts'
import { statOpen } from './stat.ts'

/** Opens a regular file to read it. Anything else is refused after it was opened, when it can no longer be swapped. */
export function open({ root }: Ground, path: string): OpenFile {
  using file = root.openToRead(path, 'read')
  const stat = statOpen(file.fd, path)
  switch (stat.kind) {
    case 'file':
      return { fd: file.release(), stat }
    case 'folder':
      throw refusal('is_a_folder', 'read', path, 'it is a folder')
    case 'link':
    case 'special':
      throw refusal('special_file', 'read', path, 'neither a file nor a folder')
  }
}

/** Opens a folder, for something to be started in it or to watch it. */
export function openFolder({ root }: Ground, path: string): number {
  using folder = root.openFolder(path, 'open')
  return folder.release()
}
