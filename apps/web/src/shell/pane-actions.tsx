import { createStore } from '@sandwire/client'
import { useStore } from '@sandwire/react'
import { type ReactElement, useState } from 'react'
import { activeTab } from '../layout/layout.ts'
import { participantsOf } from '../sharing/participants.ts'
import { ShareDialog } from '../sharing/share-dialog.tsx'
import { useParts } from '../state/context.ts'
import { useCanWork, useIsOwner } from '../state/rights.ts'
import { shellTexts } from '../texts/shell.ts'
import { IconButton } from './icon.tsx'
import { splitTerminal } from './open-terminal.ts'

const NO_STATE = createStore(undefined)

/** Buttons for the focused pane. */
export function PaneActions(): ReactElement {
  const { workbench, terminals } = useParts()
  const layout = useStore(workbench.layout)
  const [shared, setShared] = useState<string>()
  const focus = activeTab(layout)?.focus ?? ''
  const view = layout.views[focus]
  const controller = terminals.find(focus)
  const state = useStore(controller?.state ?? NO_STATE)
  const isOwner = useIsOwner(view?.sandbox ?? '')
  const hasSandbox = useCanWork()
  const session = state?.session
  return (
    <div className="pane-actions">
      {view?.kind === 'terminal' && (
        <>
          <IconButton icon="search" label={shellTexts.panes.find} onClick={() => terminals.openFind(focus)} />
          {/* Only the owner of a sandbox can share. */}
          {isOwner && (
            <IconButton
              icon="share"
              label={shellTexts.panes.share}
              isDisabled={session === undefined}
              onClick={() => setShared(session)}
            />
          )}
        </>
      )}
      {hasSandbox && (
        <>
          <IconButton
            icon="splitRight"
            label={shellTexts.commands.splitRight}
            onClick={() => splitTerminal(workbench, 'row')}
          />
          <IconButton
            icon="splitDown"
            label={shellTexts.commands.splitDown}
            onClick={() => splitTerminal(workbench, 'column')}
          />
        </>
      )}
      {shared !== undefined && view !== undefined && controller !== undefined && (
        <ShareDialog
          sandbox={view.sandbox}
          session={shared}
          participants={participantsOf(controller.state.get())}
          onClose={() => setShared(undefined)}
        />
      )}
    </div>
  )
}
