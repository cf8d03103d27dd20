import { useStore } from '@sandwire/react'
import { type KeyboardEvent, type ReactElement, useRef, useState } from 'react'
import { reveal } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import type { FileQuestion } from './file-actions.tsx'
import { Menu, type MenuItem } from './file-menu.tsx'
import { type FileTree, linesOf, type TreeLine } from './file-tree.ts'
import { parentOf, ROOT } from './paths.ts'
import { TreeRow } from './tree-line.tsx'
import { downloadUrl } from './upload.ts'

/** Lines that are drawn at most; what is below them is there after folders are closed. */
const MAX_LINES = 5_000

interface OpenMenu {
  readonly x: number
  readonly y: number
  readonly line: TreeLine
}

function download(url: string, name: string): void {
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
}

/** Files and folders as a tree, for mouse and keyboard. */
export function Tree({
  sandbox,
  tree,
  selected,
  onSelect,
  onAsk,
  onUpload,
  onDrop,
}: {
  readonly sandbox: string
  readonly tree: FileTree
  readonly selected: string | undefined
  readonly onSelect: (path: string, isFolder: boolean) => void
  readonly onAsk: (question: FileQuestion) => void
  /** Lets the person choose files for a folder. */
  readonly onUpload: (folder: string) => void
  readonly onDrop: (folder: string, transfer: DataTransfer) => void
}): ReactElement {
  const { workbench } = useParts()
  const element = useRef<HTMLDivElement>(null)
  const state = useStore(tree.state)
  const [menu, setMenu] = useState<OpenMenu>()
  const lines = linesOf(state).slice(0, MAX_LINES)
  const root = state.folders[ROOT]

  const open = ({ path, isFolder }: TreeLine): void => {
    if (isFolder) void tree.toggle(path)
    else workbench.changeLayout((layout) => reveal(layout, { kind: 'file', sandbox, path }, workbench.mint))
  }
  const itemsFor = (line: TreeLine): readonly MenuItem[] => {
    const { path, isFolder } = line
    const folder = isFolder ? path : parentOf(path)
    return [
      { label: 'Open', run: () => open(line) },
      { label: 'New file…', run: () => onAsk({ ask: 'newFile', folder }) },
      { label: 'New folder…', run: () => onAsk({ ask: 'newFolder', folder }) },
      { label: 'Upload files…', run: () => onUpload(folder) },
      { label: 'Rename or move…', run: () => onAsk({ ask: 'rename', path }) },
      {
        label: isFolder ? 'Download as tar' : 'Download',
        run: () =>
          download(
            downloadUrl(sandbox, path, isFolder),
            isFolder ? `${line.entry.name}.tar` : line.entry.name,
          ),
      },
      { label: 'Delete…', isDangerous: true, run: () => onAsk({ ask: 'remove', path, isFolder }) },
    ]
  }
  const focusLine = (at: number): void => {
    element.current?.querySelectorAll<HTMLElement>('[role=treeitem]')[at]?.focus()
  }
  const onKey = (event: KeyboardEvent, line: TreeLine, at: number): void => {
    const { path, isFolder, isOpen } = line
    const actions: Readonly<Record<string, () => void>> = {
      ArrowDown: () => focusLine(at + 1),
      ArrowUp: () => focusLine(at - 1),
      ArrowRight: () => (isFolder && !isOpen ? void tree.toggle(path) : focusLine(at + 1)),
      ArrowLeft: () => {
        if (isFolder && isOpen) void tree.toggle(path)
        else focusLine(lines.findIndex((other) => other.path === parentOf(path)))
      },
      F2: () => onAsk({ ask: 'rename', path }),
      Delete: () => onAsk({ ask: 'remove', path, isFolder }),
    }
    const action = actions[event.key]
    if (action === undefined) return
    event.preventDefault()
    action()
  }

  if (root === undefined || root.is === 'loading') return <p className="empty">Loading the files…</p>
  if (root.is === 'failed') return <p className="empty">{root.message}</p>
  return (
    <div ref={element} role="tree" aria-label="Files" className="tree">
      {lines.length === 0 && (
        <p className="empty">No files yet. Drop or upload some here, or make one in a terminal.</p>
      )}
      {lines.map((line, at) => (
        <TreeRow
          key={line.path}
          line={line}
          isSelected={selected === line.path || (selected === undefined && at === 0)}
          onOpen={() => open(line)}
          onSelect={() => onSelect(line.path, line.isFolder)}
          onKey={(event) => onKey(event, line, at)}
          onMenu={(x, y) => setMenu({ x, y, line })}
          onDropOn={(transfer) => onDrop(line.isFolder ? line.path : parentOf(line.path), transfer)}
        />
      ))}
      {(root.truncated || lines.length === MAX_LINES) && (
        <p className="tree-note dim">There is more than is shown.</p>
      )}
      {menu !== undefined && (
        <Menu x={menu.x} y={menu.y} items={itemsFor(menu.line)} onClose={() => setMenu(undefined)} />
      )}
    </div>
  )
}
