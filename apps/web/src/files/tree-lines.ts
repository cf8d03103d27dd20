import type { FileEntry } from '../api/workspace.ts'
import type { Folder, TreeState } from './file-tree.ts'
import { joinPath, ROOT } from './paths.ts'
import { fileTexts } from '../texts/files.ts'

/** A file or folder in the tree. */
export interface ItemLine {
  readonly kind: 'item'
  readonly path: string
  readonly entry: FileEntry
  readonly depth: number
  readonly isFolder: boolean
  readonly isOpen: boolean
  /** Which of its folder it is, from 1. */
  readonly position: number
  /** How many there are in its folder; -1: not all of them are known. */
  readonly setSize: number
}

/** What is to be said among the files of a folder. */
export interface NoteLine {
  readonly kind: 'note'
  /** The folder. */
  readonly path: string
  readonly depth: number
  readonly text: string
  /** More of the folder can be had. */
  readonly hasMore: boolean
}

/** A line of the tree, in the order it is shown. */
export type TreeLine = ItemLine | NoteLine

export function isFolder({ kind, target }: FileEntry): boolean {
  return kind === 'folder' || target === 'folder'
}

/** The lines of a tree, those of folders that are open below them. */
export function linesOf(state: TreeState): readonly TreeLine[] {
  const lines: TreeLine[] = []
  if (state.folders[ROOT]?.is === 'ready') addLines(lines, state, { path: ROOT, depth: 0 })
  return lines
}

function addLines(
  lines: TreeLine[],
  state: TreeState,
  { path, depth }: { readonly path: string; readonly depth: number },
): void {
  const folder = state.folders[path]
  const entries = folder?.is === 'ready' ? folder.entries : []
  const setSize = folder?.is === 'ready' && folder.rest.is !== 'none' ? -1 : entries.length
  for (const [at, entry] of entries.entries()) {
    const own = joinPath(path, entry.name)
    const isOpen = state.open.has(own)
    lines.push({
      kind: 'item',
      path: own,
      entry,
      depth,
      isFolder: isFolder(entry),
      isOpen,
      position: at + 1,
      setSize,
    })
    if (isOpen) addLines(lines, state, { path: own, depth: depth + 1 })
  }
  const text = noteOf(folder, path)
  const hasMore = folder?.is === 'ready' && folder.rest.is === 'more'
  if (text !== undefined) lines.push({ kind: 'note', path, depth, text, hasMore })
}

function noteOf(folder: Folder | undefined, path: string): string | undefined {
  if (folder === undefined || folder.is === 'loading') return fileTexts.loading
  if (folder.is === 'failed') return folder.message
  switch (folder.rest.is) {
    case 'none':
      // Of an empty workspace more is said.
      return folder.entries.length === 0 && path !== ROOT ? fileTexts.empty : undefined
    case 'more':
      return fileTexts.loadingMore
    case 'failed':
      return fileTexts.cannotLoadMore(folder.rest.message)
    case 'tooMany':
      return fileTexts.tooMany
  }
}
