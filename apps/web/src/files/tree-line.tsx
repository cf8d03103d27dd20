import type { CSSProperties, KeyboardEvent, ReactElement } from 'react'
import { Icon } from '../shell/icon.tsx'
import { PATH_TYPE } from './drop-place.tsx'
import { shownName, spokenName } from './shown-name.ts'
import type { ItemLine, NoteLine } from './tree-lines.ts'
import { ROW_PX } from './visible-rows.ts'
import { fileTexts } from '../texts/files.ts'

/** Rows are where they would be if all of them were drawn. */
function rowStyle(row: number, depth: number): CSSProperties {
  return { '--depth': depth, top: row * ROW_PX, height: ROW_PX } as CSSProperties
}

/** One file or folder in the tree. */
export function TreeRow({
  line,
  row,
  isSelected,
  onOpen,
  onSelect,
  onKey,
  onMenu,
  onDropOn,
}: {
  readonly line: ItemLine
  /** Its place among all rows, from 0. */
  readonly row: number
  readonly isSelected: boolean
  readonly onOpen: () => void
  readonly onSelect: () => void
  readonly onKey: (event: KeyboardEvent) => void
  readonly onMenu: (x: number, y: number) => void
  readonly onDropOn: (transfer: DataTransfer) => void
}): ReactElement {
  const { entry, isFolder, isOpen, depth, path, position, setSize } = line
  return (
    <button
      type="button"
      role="treeitem"
      className="tree-line tree-row"
      style={rowStyle(row, depth)}
      data-row={row}
      aria-label={
        entry.kind === 'link' ? `${spokenName(entry.name)}, ${fileTexts.link}` : spokenName(entry.name)
      }
      aria-level={depth + 1}
      aria-posinset={position}
      aria-setsize={setSize}
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
      {entry.kind === 'link' && <span className="tree-mark dim">{fileTexts.link}</span>}
    </button>
  )
}

/** What is said among the files of a folder. */
export function TreeNote({
  line: { text, depth },
  row,
}: {
  readonly line: NoteLine
  readonly row: number
}): ReactElement {
  return (
    <p className="tree-note tree-row dim" style={rowStyle(row, depth)} title={text}>
      {text}
    </p>
  )
}
