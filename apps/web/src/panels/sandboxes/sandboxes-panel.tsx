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
import { sandboxTexts } from '../../texts/sandboxes.ts'

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
        <h2>{sandboxTexts.title}</h2>
        {!isGuest && (
          <IconButton icon="plus" label={sandboxTexts.create.title} onClick={() => setCreating(true)} />
        )}
        <IconButton
          icon="refresh"
          label={sandboxTexts.refresh}
          onClick={() => void workbench.refreshSandboxes()}
        />
      </header>
      {isAway && (
        <p className="trouble" role="status">
          {sandboxTexts.unreachable}
          {sandboxes.is === 'ready' && sandboxTexts.stale}
        </p>
      )}
      {sandboxes.is === 'loading' && <p className="empty">{sandboxTexts.loading}</p>}
      {sandboxes.is === 'failed' && !isAway && (
        <p className="empty">{sandboxTexts.retrying(sandboxes.message)}</p>
      )}
      {sandboxes.is === 'ready' && sandboxes.value.length === 0 && (
        <p className="empty">{isGuest ? sandboxTexts.noneForGuest : sandboxTexts.none}</p>
      )}
      {sandboxes.is === 'ready' && (
        <ul className={isAway ? 'rows stale' : 'rows'}>
          {sandboxes.value.map((sandbox) => (
            <SandboxRow key={sandbox.id} sandbox={sandbox} />
          ))}
        </ul>
      )}
      <section aria-label={sandboxTexts.sessions.title}>
        <header className="panel-head">
          <h2>{sandboxTexts.sessions.title}</h2>
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
