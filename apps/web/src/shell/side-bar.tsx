import { useStore } from '@sandwire/react'
import { type ReactElement, Suspense } from 'react'
import { PANELS } from '../panels/panels.ts'
import { useParts } from '../state/context.ts'
import { useHasPlace } from '../state/use-rights.ts'
import { IconButton } from './icon-button.tsx'
import { PartBoundary } from './part-boundary.tsx'

/** The row of panels, and the one that is open. */
export function SideBar(): ReactElement {
  const { workbench } = useParts()
  const open = useStore(workbench.panel)
  const hasPlace = useHasPlace()
  const panels = PANELS.filter(({ isForWork }) => hasPlace || !isForWork)
  const panel = panels.find(({ id }) => id === open)
  return (
    <>
      <nav className="activity-bar" aria-label="Panels">
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
          label="Commands and keys"
          onClick={() => workbench.showOverlay('commands')}
        />
        <IconButton icon="settings" label="Settings" onClick={() => workbench.showOverlay('settings')} />
      </nav>
      {panel !== undefined && (
        <aside className="panel" aria-label={panel.label}>
          <PartBoundary key={panel.id}>
            <Suspense fallback={<p className="empty">Loading…</p>}>
              <panel.Body />
            </Suspense>
          </PartBoundary>
        </aside>
      )}
    </>
  )
}
