import { shownName } from '../files/shown-name.ts'

/** A path as git tells it, for a row: its own name, and the folder it is in where that is not the root. */
export interface ChangedPath {
  readonly name: string
  readonly folder: string | undefined
  /** Git tells a folder of which it knows nothing as one, with a slash at its end. */
  readonly isFolder: boolean
}

/** A path with the one it had before; of two in one folder the first is as short as can be. */
export function renamedText(from: string, to: string): string {
  const [old, now] = [readChangedPath(from), readChangedPath(to)]
  return old.folder === now.folder
    ? `${shownName(old.name)} → ${shownName(now.name)}`
    : `${shownName(from)} → ${shownName(now.name)}`
}

export function readChangedPath(path: string): ChangedPath {
  const isFolder = path.endsWith('/')
  const plain = isFolder ? path.slice(0, -1) : path
  const at = plain.lastIndexOf('/')
  return { name: plain.slice(at + 1), folder: at === -1 ? undefined : plain.slice(0, at), isFolder }
}
