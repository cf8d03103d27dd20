import {
  AT_REMOVEDIR,
  EACCES,
  EISDIR,
  ENOENT,
  EPERM,
  O_DIRECTORY,
  O_NOFOLLOW,
  O_RDONLY,
} from '../workspace/beneath/constants.ts'
import { fileError } from '../workspace/beneath/file-error.ts'
import {
  chmodFd,
  cString,
  Descriptor,
  openAt,
  readFolder,
  unlinkAt,
} from '../workspace/beneath/system-calls.ts'
import { chmodAt, rewindFolder } from './system-calls.ts'

/** Field offsets of `struct linux_dirent64`. */
const LENGTH_AT = 16
const NAME_AT = 19
const BUFFER_BYTES = 32 * 1024

/** Removes everything in an open folder, and follows no link. Throws when something cannot be removed. */
export function emptyFolder(fd: number, path: string): void {
  // Removing entries while a folder is read can skip others: repeat until there is nothing left.
  for (;;) {
    const names = namesIn(fd, path)
    if (names.length === 0) return
    for (const name of names) removeEntry(fd, name, path)
  }
}

function namesIn(fd: number, path: string): readonly Uint8Array[] {
  const rewound = rewindFolder(fd)
  if (rewound < 0) throw fileError('list', path, rewound)
  const buffer = Buffer.alloc(BUFFER_BYTES)
  const names: Uint8Array[] = []
  for (;;) {
    const size = readFolder(fd, buffer)
    if (size < 0) throw fileError('list', path, size)
    if (size === 0) return names
    for (let at = 0; at < size; at += buffer.readUInt16LE(at + LENGTH_AT)) {
      const name = buffer.subarray(at + NAME_AT, buffer.indexOf(0, at + NAME_AT))
      const isSpecial = name.equals(Buffer.from('.')) || name.equals(Buffer.from('..'))
      if (!isSpecial) names.push(Uint8Array.from(name))
    }
  }
}

function removeEntry(fd: number, name: Uint8Array, path: string): void {
  const terminated = cString(name)
  const result = unlinkAt(fd, terminated, 0)
  if (result >= 0 || result === -ENOENT) return
  // Linux answers EISDIR for a folder, other systems EPERM.
  if (result !== -EISDIR && result !== -EPERM) throw fileError('remove', path, result)
  const flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
  let opened = openAt(fd, terminated, flags)
  // The owner removed its own read permission.
  if (opened === -EACCES && chmodAt(fd, terminated, 0o700) >= 0) opened = openAt(fd, terminated, flags)
  if (opened < 0) throw fileError('remove', path, opened)
  using folder = new Descriptor(opened)
  chmodFd(folder.fd, 0o700)
  emptyFolder(folder.fd, path)
  const removed = unlinkAt(fd, terminated, AT_REMOVEDIR)
  if (removed < 0 && removed !== -ENOENT) throw fileError('remove', path, removed)
}
