import { useStore } from '@sandwire/react'
import { type ReactElement, useState } from 'react'
import { IconButton } from '../../shell/icon-button.tsx'
import { openTerminal } from '../../shell/open-terminal.ts'
import { useParts } from '../../state/context.ts'
import { CreateDialog, type MadeSandbox } from './create-dialog.tsx'
import { networksFor } from './new-sandbox.ts'
import { SandboxRow } from './sandbox-row.tsx'
import { SessionRows } from './session-rows.tsx'
import { SharedRows } from './shared-rows.tsx'

/** Sandboxes, what runs in them, and what others share. */
export function SandboxesPanel(): ReactElement {
  const { workbench, terminals } = useParts()
  const sandboxes = useStore(workbench.sandboxes)
  const person = useStore(workbench.person)
  const isAway = useStore(workbench.isAway)
  const [isCreating, setCreating] = useState(false)
  const isGuest = person.is === 'ready' && person.value?.guest === true
  const made = ({ id, firstCommand }: MadeSandbox): void => {
    setCreating(false)
    workbench.choose(id)
    if (firstCommand !== undefined) terminals.startFirst(firstCommand)
    openTerminal(workbench, id)
    void workbench.refreshSandboxes()
  }
  return (
    <>
      <header className="panel-head">
        <h2>Sandboxes</h2>
        {!isGuest && <IconButton icon="plus" label="New sandbox" onClick={() => setCreating(true)} />}
        <IconButton icon="refresh" label="Look again" onClick={() => void workbench.refreshSandboxes()} />
      </header>
      {isAway && (
        <p className="trouble" role="status">
          The server does not answer. It is asked again every few seconds.
          {sandboxes.is === 'ready' && ' Below is how things were.'}
        </p>
      )}
      {sandboxes.is === 'loading' && <p className="empty">Loading the sandboxes…</p>}
      {sandboxes.is === 'failed' && !isAway && (
        <p className="empty">{sandboxes.message}. It is tried again.</p>
      )}
      {sandboxes.is === 'ready' && sandboxes.value.length === 0 && (
        <p className="empty">
          {isGuest ? 'You are a guest: others share sessions with you.' : 'No sandboxes yet.'}
        </p>
      )}
      {sandboxes.is === 'ready' && (
        <ul className={isAway ? 'rows stale' : 'rows'}>
          {sandboxes.value.map((sandbox) => (
            <SandboxRow key={sandbox.id} sandbox={sandbox} />
          ))}
        </ul>
      )}
      <section aria-label="Sessions">
        <header className="panel-head">
          <h2>Sessions</h2>
        </header>
        <SessionRows />
      </section>
      <SharedRows />
      {isCreating && (
        <CreateDialog
          networks={networksFor(sandboxes.is === 'ready' ? sandboxes.value : [])}
          onMade={made}
          onClose={() => setCreating(false)}
        />
      )}
    </>
  )
}
