import { useStore } from '@sandwire/react'
import {
  type KeyboardEvent as ReactKeyboardEvent,
  type ReactElement,
  type RefObject,
  useEffect,
  useRef,
} from 'react'
import {
  activateTab,
  type Layout,
  MAX_TAB_NAME,
  moveTab,
  renameTab,
  type Tab,
  type View,
} from '../layout/layout.ts'
import { leavesOf } from '../layout/pane-tree.ts'
import { useParts } from '../state/context.ts'
import { useCanWork } from '../state/rights.ts'
import { nameSandbox } from '../state/sandbox-names.ts'
import { shellTexts } from '../texts/shell.ts'
import { closeWholeTab } from './close-views.ts'
import { Icon, IconButton, type IconName } from './icon.tsx'
import { PaneActions } from './pane-actions.tsx'
import { EMPTY_LABEL, labelTabs, type TabLabel } from './tab-labels.ts'

const ICONS: Readonly<Record<View['kind'], IconName>> = {
  terminal: 'terminal',
  tmux: 'terminal',
  run: 'agent',
  conversation: 'agent',
  file: 'files',
  diff: 'git',
}

/** Focuses a tab; Enter activates it, which moves the focus into the tab. */
function focusTab(from: HTMLElement, at: number): void {
  from.closest('.tabs')?.querySelectorAll<HTMLElement>('[role=tab]').item(at)?.focus()
}

function idOf({ id }: Tab): string {
  return `tab-${id}`
}

/** Scrolls the active tab into view. */
function useScrollIntoView(isActive: boolean): RefObject<HTMLDivElement | null> {
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (isActive) element.current?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [isActive])
  return element
}

function TabButton({
  tab,
  label: { name, context, hint },
  at,
  layout,
}: {
  readonly tab: Tab
  readonly label: TabLabel
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
  const element = useScrollIntoView(isActive)
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
      ref={element}
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
          id={idOf(tab)}
          aria-selected={isActive}
          tabIndex={isActive ? 0 : -1}
          className="tab-label"
          title={hint}
          onClick={() => change((old) => activateTab(old, tab.id))}
          onDoubleClick={() => workbench.startRename(tab.id)}
          onKeyDown={onKey}
        >
          <Icon name={view === undefined ? 'terminal' : ICONS[view.kind]} />
          <span className="tab-name">{name}</span>
          {context !== '' && <span className="tab-place">{context}</span>}
          {isDirty && (
            <span className="tab-dirty" title={shellTexts.tabs.unsaved}>
              <span className="visually-hidden">, {shellTexts.tabs.unsaved}</span>
            </span>
          )}
          {!isActive && <TabBell views={leaves} />}
          {leaves.length > 1 && <span className="tab-count">{leaves.length}</span>}
        </button>
      )}
      <IconButton
        icon="close"
        label={shellTexts.tabs.close([name, context].join(' ').trim())}
        isMouseOnly={!isActive}
        onClick={close}
      />
    </div>
  )
}

/** The row of tabs. */
export function TabBar({ onNew }: { readonly onNew: () => void }): ReactElement {
  const { workbench } = useParts()
  const hasSandbox = useCanWork()
  const layout = useStore(workbench.layout)
  const labels = useTabLabels(layout)
  return (
    <div className="tab-bar">
      {/* A tablist may contain only tabs, so it refers to them by `aria-owns`; the close buttons stay reachable. */}
      <div role="tablist" aria-label={shellTexts.tabs.all} aria-owns={layout.tabs.map(idOf).join(' ')} />
      <div className="tabs">
        {layout.tabs.map((tab, at) => (
          <TabButton
            key={tab.id}
            tab={tab}
            label={labels.get(tab.id) ?? EMPTY_LABEL}
            at={at}
            layout={layout}
          />
        ))}
      </div>
      {hasSandbox && <IconButton icon="plus" label={shellTexts.commands.newTerminal} onClick={onNew} />}
      <PaneActions />
    </div>
  )
}

/** Marks an inactive tab in which the bell rang. */
function TabBell({ views }: { readonly views: readonly string[] }): ReactElement | null {
  const { terminals } = useParts()
  const rung = useStore(terminals.bells.rung)
  if (!views.some((view) => rung.has(view))) return null
  return (
    <span className="tab-bell" title={shellTexts.tabs.bell}>
      <span className="visually-hidden">, {shellTexts.tabs.bell}</span>
    </span>
  )
}

/** The input that renames a tab. */
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
      aria-label={shellTexts.tabs.name}
      maxLength={MAX_TAB_NAME}
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
        // The terminal, which gets the focus, must not receive this key.
        event.preventDefault()
        end()
      }}
    />
  )
}

/** The labels of all tabs, updated with terminal titles and sandbox names. */
function useTabLabels(layout: Layout): ReadonlyMap<string, TabLabel> {
  const { workbench, terminals } = useParts()
  const sessions = useStore(terminals.sessions.all)
  const names = useStore(workbench.names.all)
  const user = useStore(workbench.user)
  const isGuest = user.kind === 'ready' && user.value?.guest === true
  return labelTabs(layout, {
    titles: Object.fromEntries(Object.entries(sessions).map(([session, { title }]) => [session, title])),
    nameSandbox: (sandbox) => nameSandbox(sandbox, names, isGuest),
  })
}
