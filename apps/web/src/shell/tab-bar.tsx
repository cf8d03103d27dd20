import { createStore } from '@sandwire/client'
import { useStore } from '@sandwire/react'
import { type ReactElement, useState } from 'react'
import {
  activateTab,
  closeTab,
  type Layout,
  moveTab,
  renameTab,
  type Tab,
  type View,
} from '../layout/layout.ts'
import { leavesOf } from '../layout/pane-tree.ts'
import { useParts } from '../state/context.ts'
import { useHasPlace } from '../state/use-rights.ts'
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

function TabButton({
  tab,
  at,
  layout,
}: {
  readonly tab: Tab
  readonly at: number
  readonly layout: Layout
}): ReactElement {
  const { workbench } = useParts()
  const [isRenaming, setRenaming] = useState(false)
  const view = layout.views[tab.focus]
  const panes = leavesOf(tab.panes).length
  const change = workbench.changeLayout.bind(workbench)
  const rename = (name: string): void => {
    setRenaming(false)
    change((old) => renameTab(old, tab.id, name))
  }
  return (
    <div
      className={`tab ${layout.active === tab.id ? 'active' : ''}`}
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
        if (event.button === 1) change((old) => closeTab(old, tab.id))
      }}
    >
      {isRenaming ? (
        <input
          className="tab-rename"
          aria-label="Name of the tab"
          defaultValue={tab.name ?? ''}
          autoFocus
          onBlur={(event) => rename(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') rename(event.currentTarget.value)
            if (event.key === 'Escape') setRenaming(false)
          }}
        />
      ) : (
        <button
          type="button"
          role="tab"
          aria-selected={layout.active === tab.id}
          className="tab-label"
          onClick={() => change((old) => activateTab(old, tab.id))}
          onDoubleClick={() => setRenaming(true)}
        >
          <Icon name={view === undefined ? 'terminal' : ICONS[view.kind]} />
          <TabName tab={tab} view={view} />
          {panes > 1 && <span className="tab-count">{panes}</span>}
        </button>
      )}
      <IconButton icon="close" label="Close tab" onClick={() => change((old) => closeTab(old, tab.id))} />
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
