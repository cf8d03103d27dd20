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
  /** Position in its folder, from 1. */
  readonly position: number
  /** Entries in its folder; -1 when not all are loaded. */
  readonly setSize: number
}

/** A message among the entries of a folder. */
export interface NoteLine {
  readonly kind: 'note'
  /** The folder. */
  readonly path: string
  readonly depth: number
  readonly text: string
  /** The next page can be loaded. */
  readonly hasMore: boolean
}

/** A row of the tree, in display order. */
export type TreeLine = ItemLine | NoteLine

export function isFolder({ kind, target }: FileEntry): boolean {
  return kind === 'folder' || target === 'folder'
}

/** The rows of a tree, with the contents of expanded folders below them. */
export function linesOf(state: TreeState): readonly TreeLine[] {
  const lines: TreeLine[] = []
  if (state.folders[ROOT]?.kind === 'ready') addLines(lines, state, { path: ROOT, depth: 0 })
  return lines
}

function addLines(
  lines: TreeLine[],
  state: TreeState,
  { path, depth }: { readonly path: string; readonly depth: number },
): void {
  const folder = state.folders[path]
  const entries = folder?.kind === 'ready' ? folder.entries : []
  const setSize = folder?.kind === 'ready' && folder.rest.kind !== 'none' ? -1 : entries.length
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
  const hasMore = folder?.kind === 'ready' && folder.rest.kind === 'more'
  if (text !== undefined) lines.push({ kind: 'note', path, depth, text, hasMore })
}

function noteOf(folder: Folder | undefined, path: string): string | undefined {
  if (folder === undefined || folder.kind === 'loading') return fileTexts.loading
  if (folder.kind === 'failed') return folder.message
  switch (folder.rest.kind) {
    case 'none':
      // The panel has its own message for an empty workspace.
      return folder.entries.length === 0 && path !== ROOT ? fileTexts.empty : undefined
    case 'more':
      return fileTexts.loadingMore
    case 'failed':
      return fileTexts.cannotLoadMore(folder.rest.message)
    case 'tooMany':
      return fileTexts.tooMany
  }
}
