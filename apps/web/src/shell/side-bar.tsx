import { useStore } from '@sandwire/react'
import { type ReactElement, type RefObject, Suspense, useEffect, useRef } from 'react'
import { activeTab } from '../layout/layout.ts'
import { PANELS } from '../panels/panels.ts'
import { PartBoundary } from '../parts/lazy-part.tsx'
import { useParts } from '../state/context.ts'
import { useCanWork } from '../state/rights.ts'
import type { Workbench } from '../state/workbench.ts'
import { shellTexts } from '../texts/shell.ts'
import { IconButton } from './icon.tsx'

/** Focuses a panel when it opens, and the terminal when it closes. */
function useKeyboard(open: string | undefined): RefObject<HTMLElement | null> {
  const { terminals } = useParts()
  const element = useRef<HTMLElement>(null)
  const last = useRef(open)
  useEffect(() => {
    if (last.current === open) return
    last.current = open
    if (open === undefined) terminals.focusActive()
    else if (element.current?.contains(document.activeElement) === false) element.current.focus()
  }, [terminals, open])
  return element
}

/** The panel buttons and the open panel. */
export function SideBar(): ReactElement {
  const { workbench, terminals } = useParts()
  const open = useStore(workbench.panel)
  const element = useKeyboard(open)
  const hasSandbox = useCanWork()
  const panels = PANELS.filter(({ needsSandbox }) => hasSandbox || !needsSandbox)
  const panel = panels.find(({ id }) => id === open)
  return (
    <>
      <nav className="activity-bar" aria-label={shellTexts.panels.all}>
        {panels.map(({ id, label, icon }) => (
          <IconButton
            key={id}
            icon={icon}
            label={label}
            isPressed={id === open}
            onClick={() => workbench.showPanel(id === open ? undefined : id)}
          />
        ))}
        <span className="activity-space" />
        <IconButton
          icon="keyboard"
          label={shellTexts.panels.commands}
          onClick={() => workbench.showOverlay('commands')}
        />
        <IconButton
          icon="settings"
          label={shellTexts.panels.settings}
          onClick={() => workbench.showOverlay('settings')}
        />
      </nav>
      {panel !== undefined && (
        <aside
          ref={element}
          className="panel"
          aria-label={panel.label}
          tabIndex={-1}
          onKeyDown={(event) => {
            if (event.key === 'Escape' && !event.defaultPrevented) terminals.focusActive()
          }}
        >
          {/* For narrow screens, where the panel covers its own button. */}
          <div className="panel-close">
            <IconButton
              icon="close"
              label={shellTexts.panels.close}
              onClick={() => workbench.showPanel(undefined)}
            />
          </div>
          <PartBoundary key={panel.id}>
            <Suspense fallback={<p className="empty">{shellTexts.loading}</p>}>
              <panel.Body />
            </Suspense>
          </PartBoundary>
        </aside>
      )}
    </>
  )
}

const NARROW = '(width <= 700px)'

/** On narrow screens the panel covers the panes, so it closes when something is opened from it. */
export function hidePanelOnNarrowScreens(workbench: Workbench): void {
  if (matchMedia(NARROW).matches) workbench.hidePanel()
  let last = activeTab(workbench.layout.get())?.focus
  workbench.layout.subscribe((layout) => {
    const focus = activeTab(layout)?.focus
    if (focus !== last && matchMedia(NARROW).matches) workbench.hidePanel()
    last = focus
  })
}
