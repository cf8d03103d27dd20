import { useStore } from '@sandwire/react'
import { type ReactElement, Suspense, useEffect, useRef } from 'react'
import { focusView, resizePanes, type Tab, type View } from '../layout/layout.ts'
import { leavesOf } from '../layout/pane-tree.ts'
import { lazyPart, PartBoundary } from '../parts/lazy-part.tsx'
import { useParts } from '../state/context.ts'
import { useCanWork } from '../state/rights.ts'
import { TerminalPane } from '../terminals/terminal-pane.tsx'
import { shellTexts } from '../texts/shell.ts'
import { closePane } from './close-views.ts'
import { openSharedConversation } from '../agents/open-agent.ts'
import { openSharedTarget, openTerminal, takeOpenTarget } from './open-terminal.ts'
import { Panes } from './panes.tsx'
import { TabBar } from './tab-bar.tsx'

const FilePane = lazyPart(async () => (await import('../files/file-pane.tsx')).FilePane)
const RunView = lazyPart(async () => (await import('../agents/run-view.tsx')).RunView)
const ConversationView = lazyPart(
  async () => (await import('../agents/conversation-view.tsx')).ConversationView,
)
const TmuxView = lazyPart(async () => (await import('../tmux/tmux-view.tsx')).TmuxView)
const DiffPane = lazyPart(async () => (await import('../git/diff-pane.tsx')).DiffPane)

function ViewPane({
  viewId,
  view,
  isFocused,
}: {
  viewId: string
  view: View
  isFocused: boolean
}): ReactElement {
  const parts = useParts()
  const close = (): void => closePane(parts, viewId)
  switch (view.kind) {
    case 'terminal':
      return <TerminalPane viewId={viewId} view={view} isFocused={isFocused} onClose={close} />
    case 'tmux':
      return <TmuxView viewId={viewId} view={view} isFocused={isFocused} />
    case 'run':
      return <RunView key={viewId} view={view} />
    case 'conversation':
      return <ConversationView key={viewId} view={view} />
    case 'file':
      return <FilePane key={viewId} viewId={viewId} view={view} isFocused={isFocused} />
    case 'diff':
      return <DiffPane key={viewId} view={view} />
  }
}

function TabPanel({ tab, isActive }: { readonly tab: Tab; readonly isActive: boolean }): ReactElement {
  const { workbench } = useParts()
  const { views } = useStore(workbench.layout)
  return (
    <div className="tab-panel" role="tabpanel" hidden={!isActive}>
      <Panes
        tree={tab.panes}
        onResize={(split, share) =>
          workbench.changeLayout((layout) => resizePanes(layout, tab.id, split, share))
        }
        draw={(id) => {
          const view = views[id]
          const isFocused = isActive && tab.focus === id
          if (view === undefined) return null
          return (
            <section
              className={`view ${isFocused ? 'focused' : ''}`}
              data-sandbox={view.sandbox}
              data-view={id}
              aria-label={`${view.kind} ${leavesOf(tab.panes).indexOf(id) + 1}`}
              onFocusCapture={() => {
                if (!isFocused) workbench.changeLayout((layout) => focusView(layout, id))
              }}
            >
              <PartBoundary>
                <Suspense fallback={<p className="empty">{shellTexts.loading}</p>}>
                  <ViewPane viewId={id} view={view} isFocused={isFocused} />
                </Suspense>
              </PartBoundary>
            </section>
          )
        }}
      />
    </div>
  )
}

/** Tabs and panes. On load it opens what the user came for, or a shell when nothing is open. */
export function MainArea(): ReactElement {
  const { workbench } = useParts()
  const { tabs, active } = useStore(workbench.layout)
  const hasSandbox = useCanWork()
  const hasBegun = useRef(false)
  useEffect(() => {
    if (hasBegun.current) return
    hasBegun.current = true
    const arrival = takeOpenTarget(sessionStorage)
    if (arrival !== undefined) {
      if (!openSharedConversation(workbench, arrival)) openSharedTarget(workbench, arrival)
    } else if (workbench.layout.get().tabs.length === 0 && hasSandbox) openTerminal(workbench)
  }, [workbench, hasSandbox])
  return (
    <main className="main-area">
      <h1 className="visually-hidden">Sandwire</h1>
      <TabBar onNew={() => openTerminal(workbench)} />
      {tabs.length === 0 && (
        <div className="empty">
          <p>{hasSandbox ? shellTexts.tabs.none : shellTexts.tabs.noneForGuest}</p>
          {hasSandbox && (
            <button type="button" className="primary" onClick={() => openTerminal(workbench)}>
              {shellTexts.commands.newTerminal}
            </button>
          )}
        </div>
      )}
      {tabs.map((tab) => (
        <TabPanel key={tab.id} tab={tab} isActive={tab.id === active} />
      ))}
    </main>
  )
}
