import type { CSSProperties, KeyboardEvent, ReactElement } from 'react'
import { Icon } from '../shell/icon.tsx'
import { PATH_TYPE } from './drop-place.tsx'
import type { TreeLine } from './file-tree.ts'
import { shownName } from './shown-name.ts'

function depthStyle(depth: number): CSSProperties {
  return { '--depth': depth } as CSSProperties
}

/** One file or folder in the tree. */
export function TreeRow({
  line,
  isSelected,
  onOpen,
  onSelect,
  onKey,
  onMenu,
  onDropOn,
}: {
  readonly line: TreeLine
  readonly isSelected: boolean
  readonly onOpen: () => void
  readonly onSelect: () => void
  readonly onKey: (event: KeyboardEvent) => void
  readonly onMenu: (x: number, y: number) => void
  readonly onDropOn: (transfer: DataTransfer) => void
}): ReactElement {
  const { entry, isFolder, isOpen, depth, path, note } = line
  return (
    <>
      <button
        type="button"
        role="treeitem"
        className="tree-line"
        style={depthStyle(depth)}
        aria-level={depth + 1}
        aria-selected={isSelected}
        aria-expanded={isFolder ? isOpen : undefined}
        title={shownName(path)}
        tabIndex={isSelected ? 0 : -1}
        draggable
        onFocus={onSelect}
        onClick={onOpen}
        onKeyDown={onKey}
        onContextMenu={(event) => {
          event.preventDefault()
          onMenu(event.clientX, event.clientY)
        }}
        onDragStart={(event) => event.dataTransfer.setData(PATH_TYPE, path)}
        onDragOver={(event) => {
          event.preventDefault()
        }}
        onDrop={(event) => {
          event.preventDefault()
          event.stopPropagation()
          onDropOn(event.dataTransfer)
        }}
      >
        {isFolder ? (
          <span className="chevron">
            <Icon name="chevron" />
          </span>
        ) : (
          <Icon name="files" />
        )}
        <span className="tree-name">{shownName(entry.name)}</span>
        {entry.kind === 'link' && <span className="tree-mark dim">link</span>}
      </button>
      {note !== undefined && (
        <p className="tree-note dim" style={depthStyle(depth)}>
          {note}
        </p>
      )}
    </>
  )
}
