import { useStore } from '@sandwire/react'
import {
  type CSSProperties,
  type KeyboardEvent,
  type ReactElement,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react'
import { reveal } from '../layout/layout.ts'
import { Icon } from '../shell/icon.tsx'
import { Menu, type MenuItem } from '../shell/menu.tsx'
import { useParts } from '../state/context.ts'
import { fileTexts } from '../texts/files.ts'
import { displayName, spokenName } from './display-name.ts'
import { downloadUrl, PATH_TYPE } from './drops.tsx'
import type { FileQuestion } from './file-dialogs.tsx'
import type { TreePanel } from './file-tree.ts'
import { parentOf, ROOT } from './paths.ts'
import { type ItemLine, linesOf, type NoteLine, type TreeLine } from './tree-lines.ts'
import { appendTyped, findLineByKey, findLineByText, type Typed } from './tree-navigation.ts'
import { useTreeFocus } from './use-tree-focus.ts'
import { ROW_PX, useVisibleRows, type VisibleRows } from './visible-rows.ts'

interface OpenMenu {
  readonly x: number
  readonly y: number
  readonly line: ItemLine
}

function download(url: string, name: string): void {
  const link = document.createElement('a')
  link.href = url
  link.download = displayName(name)
  link.click()
}

/** True for type-ahead letters; a leading space activates the row instead. */
function isLetter(event: KeyboardEvent, typed: Typed | undefined): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || !/^.$/u.test(event.key)) return false
  return event.key !== ' ' || appendTyped(typed, ' ', event.timeStamp).text !== ' '
}

/** Keeps the visible rows in place when rows above them come or go. */
function useStableScroll(lines: readonly TreeLine[], { firstRow, shift }: VisibleRows): void {
  const before = useRef(lines)
  useLayoutEffect(() => {
    const row = firstRow()
    const topLine = before.current[row]
    before.current = lines
    // At the top, new first rows should become visible.
    if (row === 0 || topLine === undefined || lines[row]?.path === topLine.path) return
    const now = lines.findIndex(({ kind, path }) => kind === topLine.kind && path === topLine.path)
    if (now !== -1) shift(now - row)
  })
}

/** The file tree for mouse and keyboard. Only visible rows and the focusable one are rendered. */
export function Tree({
  sandbox,
  treePanel,
  selected,
  onSelect,
  onAsk,
  onUpload,
  onDrop,
}: {
  readonly sandbox: string
  readonly treePanel: TreePanel
  readonly selected: string | undefined
  readonly onSelect: (path: string, isFolder: boolean) => void
  readonly onAsk: (question: FileQuestion) => void
  /** Opens a file chooser for a folder. */
  readonly onUpload: (folder: string) => void
  readonly onDrop: (folder: string, transfer: DataTransfer) => void
}): ReactElement {
  const { workbench } = useParts()
  const { tree } = treePanel
  const element = useRef<HTMLDivElement>(null)
  const state = useStore(tree.state)
  const [menu, setMenu] = useState<OpenMenu>()
  const lines = useMemo(() => linesOf(state), [state])
  const rows = useVisibleRows(treePanel)
  const { from, to } = rows.range
  const typed = useRef<Typed>(undefined)
  const root = state.folders[ROOT]
  const selectedLine = useMemo(
    () => lines.findIndex(({ kind, path }) => kind === 'item' && path === selected),
    [lines, selected],
  )
  // One row is always focusable, even when the selected one is gone.
  const active = selectedLine === -1 ? 0 : selectedLine
  useStableScroll(lines, rows)
  const { goTo, onFocus, onBlur } = useTreeFocus(element, { treePanel, lines, selected, rows, onSelect })
  useEffect(() => {
    for (const line of lines.slice(from, to))
      if (line.kind === 'note' && line.hasMore) void tree.loadMore(line.path)
  }, [tree, lines, from, to])

  const open = ({ path, isFolder }: ItemLine): void => {
    if (isFolder) void tree.toggle(path)
    else workbench.changeLayout((layout) => reveal(layout, { kind: 'file', sandbox, path }, workbench.mint))
  }
  const itemsFor = (line: ItemLine): readonly MenuItem[] => {
    const { path, isFolder } = line
    const folder = isFolder ? path : parentOf(path)
    return [
      { label: fileTexts.menu.open, run: () => open(line) },
      { label: fileTexts.menu.newFile, run: () => onAsk({ ask: 'newFile', folder }) },
      { label: fileTexts.menu.newFolder, run: () => onAsk({ ask: 'newFolder', folder }) },
      { label: fileTexts.menu.upload, run: () => onUpload(folder) },
      { label: fileTexts.menu.rename, run: () => onAsk({ ask: 'rename', path }) },
      {
        label: isFolder ? fileTexts.menu.downloadTar : fileTexts.menu.download,
        run: () =>
          download(
            downloadUrl(sandbox, path, isFolder),
            isFolder ? `${line.entry.name}.tar` : line.entry.name,
          ),
      },
      {
        label: fileTexts.menu.delete,
        isDangerous: true,
        run: () => onAsk({ ask: 'remove', path, isFolder }),
      },
    ]
  }
  const onKey = (event: KeyboardEvent, line: ItemLine, at: number): void => {
    const { path, isFolder, isOpen } = line
    if (isLetter(event, typed.current)) {
      event.preventDefault()
      typed.current = appendTyped(typed.current, event.key, event.timeStamp)
      return goTo(findLineByText(lines, at, typed.current.text))
    }
    const go = (): void => goTo(findLineByKey(lines, { at, key: event.key, pageRows: rows.pageRows() }))
    const toggle = (): void => void tree.toggle(path)
    const actions: Readonly<Record<string, () => void>> = {
      ArrowDown: go,
      ArrowUp: go,
      Home: go,
      End: go,
      PageDown: go,
      PageUp: go,
      ArrowRight: isFolder && !isOpen ? toggle : go,
      ArrowLeft: isFolder && isOpen ? toggle : go,
      F2: () =>
        onAsk({
          ask: 'rename',
          path,
        }),
      Delete: () =>
        onAsk({
          ask: 'remove',
          path,
          isFolder,
        }),
    }
    const action = actions[event.key]
    if (action === undefined) return
    event.preventDefault()
    typed.current = undefined
    action()
  }

  if (root === undefined || root.kind === 'loading') return <p className="empty">{fileTexts.loading}</p>
  if (root.kind === 'failed') return <p className="empty">{root.message}</p>
  const visible = [...lines.slice(from, to).keys()].map((at) => at + from)
  // In order, because moving a focused element would blur it.
  const drawn = active < from ? [active, ...visible] : active < to ? visible : [...visible, active]
  return (
    <div
      ref={(mounted) => {
        element.current = mounted
      }}
      className="tree-frame"
    >
      <div
        ref={rows.ref}
        role="tree"
        aria-label={fileTexts.title}
        className="tree"
        tabIndex={lines.length === 0 ? 0 : -1}
        onFocus={onFocus}
        onBlur={onBlur}
      >
        {lines.length === 0 && <p className="empty">{fileTexts.noFiles}</p>}
        <div role="presentation" className="tree-rows" style={{ height: lines.length * ROW_PX }}>
          {drawn.map((at) => {
            const line = lines[at]
            if (line === undefined) return null
            if (line.kind === 'note') return <TreeNote key={`${line.path}/`} line={line} row={at} />
            return (
              <TreeRow
                key={line.path}
                line={line}
                row={at}
                isSelected={at === active}
                onOpen={() => open(line)}
                onSelect={() => onSelect(line.path, line.isFolder)}
                onKey={(event) => onKey(event, line, at)}
                onMenu={(x, y) => setMenu({ x, y, line })}
                onDropOn={(transfer) => onDrop(line.isFolder ? line.path : parentOf(line.path), transfer)}
              />
            )
          })}
        </div>
      </div>
      {menu !== undefined && (
        <Menu x={menu.x} y={menu.y} items={itemsFor(menu.line)} onClose={() => setMenu(undefined)} />
      )}
    </div>
  )
}

/** Rows are positioned as if all of them were rendered. */
function rowStyle(row: number, depth: number): CSSProperties {
  return { '--depth': depth, top: row * ROW_PX, height: ROW_PX } as CSSProperties
}

/** One file or folder in the tree. */
function TreeRow({
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
  /** Index among all rows, from 0. */
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
      title={displayName(path)}
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
      <span className="tree-name">{displayName(entry.name)}</span>
      {entry.kind === 'link' && <span className="tree-mark dim">{fileTexts.link}</span>}
    </button>
  )
}

/** A message among the entries of a folder. */
function TreeNote({
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
