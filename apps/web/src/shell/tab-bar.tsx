import { createStore } from '@sandwire/client'
import { useStore } from '@sandwire/react'
import { type KeyboardEvent as ReactKeyboardEvent, type ReactElement } from 'react'
import { activateTab, type Layout, moveTab, renameTab, type Tab, type View } from '../layout/layout.ts'
import { leavesOf } from '../layout/pane-tree.ts'
import { useParts } from '../state/context.ts'
import { useHasPlace } from '../state/use-rights.ts'
import { closeWholeTab } from './close-views.ts'
import { Icon, type IconName } from './icon.tsx'
import { IconButton } from './icon-button.tsx'
import { PaneActions } from './pane-actions.tsx'
import { titleOf, useSandboxName } from './view-title.ts'

const ICONS: Readonly<Record<View['kind'], IconName>> = { terminal: 'terminal', file: 'files', diff: 'git' }
const NO_STATE = createStore(undefined)

function TabName({ tab, view }: { readonly tab: Tab; readonly view: View | undefined }): ReactElement {
  const { terminals } = useParts()
  const sandboxName = useSandboxName(view?.sandbox ?? '')
  const state = useStore(terminals.find(tab.focus)?.state ?? NO_STATE)
  return <span className="tab-name">{tab.name ?? titleOf(view, state?.title, sandboxName)}</span>
}

/** Goes to a tab by keys; it opens with Enter, as opening gives the keyboard to what is in it. */
function focusTab(from: HTMLElement, at: number): void {
  from.closest('[role=tablist]')?.querySelectorAll<HTMLElement>('[role=tab]').item(at)?.focus()
}

function TabRename({ tab }: { readonly tab: Tab }): ReactElement {
  const { workbench, terminals } = useParts()
  const rename = (name: string): void => workbench.changeLayout((layout) => renameTab(layout, tab.id, name))
  const end = (): void => {
    workbench.startRename(undefined)
    terminals.focusActive()
  }
  return (
    <input
      className="tab-rename"
      aria-label="Name of the tab"
      defaultValue={tab.name ?? ''}
      autoFocus
      onBlur={(event) => {
        if (workbench.renaming.get() !== tab.id) return
        rename(event.target.value)
        workbench.startRename(undefined)
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== 'Escape') return
        if (event.key === 'Enter') rename(event.currentTarget.value)
        // The terminal, which has the keyboard next, is not to get this key as well.
        event.preventDefault()
        end()
      }}
    />
  )
}

function TabButton({
  tab,
  at,
  layout,
}: {
  readonly tab: Tab
  readonly at: number
  readonly layout: Layout
}): ReactElement {
  const parts = useParts()
  const { workbench, dirty } = parts
  const isRenaming = useStore(workbench.renaming) === tab.id
  const view = layout.views[tab.focus]
  const leaves = leavesOf(tab.panes)
  const unsaved = useStore(dirty.views)
  const isDirty = leaves.some((id) => unsaved.has(id))
  const isActive = layout.active === tab.id
  const change = workbench.changeLayout.bind(workbench)
  const close = (): void => closeWholeTab(parts, tab.id)
  const onKey = ({ key, currentTarget }: ReactKeyboardEvent<HTMLElement>): void => {
    if (key === 'Delete') close()
    if (key === 'F2') workbench.startRename(tab.id)
    if (key === 'ArrowLeft') focusTab(currentTarget, at - 1)
    if (key === 'ArrowRight') focusTab(currentTarget, at + 1)
  }
  return (
    <div
      className={`tab ${isActive ? 'active' : ''}`}
      draggable={!isRenaming}
      onDragStart={(event) => event.dataTransfer.setData('application/x-sandwire-tab', tab.id)}
      onDragOver={(event) => {
        if (event.dataTransfer.types.includes('application/x-sandwire-tab')) event.preventDefault()
      }}
      onDrop={(event) => {
        const moved = event.dataTransfer.getData('application/x-sandwire-tab')
        if (moved !== '') change((old) => moveTab(old, moved, at))
      }}
      onAuxClick={(event) => {
        if (event.button === 1) close()
      }}
    >
      {isRenaming ? (
        <TabRename tab={tab} />
      ) : (
        <button
          type="button"
          role="tab"
          aria-selected={isActive}
          tabIndex={isActive ? 0 : -1}
          className="tab-label"
          onClick={() => change((old) => activateTab(old, tab.id))}
          onDoubleClick={() => workbench.startRename(tab.id)}
          onKeyDown={onKey}
        >
          <Icon name={view === undefined ? 'terminal' : ICONS[view.kind]} />
          <TabName tab={tab} view={view} />
          {isDirty && (
            <span className="tab-dirty" title="Not saved">
              <span className="visually-hidden">, not saved</span>
            </span>
          )}
          {leaves.length > 1 && <span className="tab-count">{leaves.length}</span>}
        </button>
      )}
      {/* In a list of tabs only tabs may be named: by keys it is Delete on the tab. */}
      <span aria-hidden="true">
        <IconButton icon="close" label="Close tab" isMouseOnly onClick={close} />
      </span>
    </div>
  )
}

/** The row of what is open. */
export function TabBar({ onNew }: { readonly onNew: () => void }): ReactElement {
  const { workbench } = useParts()
  const hasPlace = useHasPlace()
  const layout = useStore(workbench.layout)
  return (
    <div className="tab-bar">
      <div className="tabs" role="tablist" aria-label="Open tabs">
        {layout.tabs.map((tab, at) => (
          <TabButton key={tab.id} tab={tab} at={at} layout={layout} />
        ))}
      </div>
      {hasPlace && <IconButton icon="plus" label="New terminal" onClick={onNew} />}
      <PaneActions />
    </div>
  )
}
