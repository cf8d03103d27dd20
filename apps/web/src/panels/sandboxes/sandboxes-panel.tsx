import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import type { Sandbox } from '../../api/sandboxes.ts'
import { IconButton } from '../../shell/icon-button.tsx'
import { openTerminal } from '../../shell/open-terminal.ts'
import { useParts } from '../../state/context.ts'

function Row({ sandbox }: { readonly sandbox: Sandbox }): ReactElement {
  const { workbench } = useParts()
  const current = useStore(workbench.current)
  return (
    <li className={`row ${current === sandbox.id ? 'current' : ''}`}>
      <button type="button" className="row-main" onClick={() => workbench.choose(sandbox.id)}>
        <span className={`dot ${sandbox.state}`} aria-hidden="true" />
        <span className="row-name">{sandbox.name}</span>
        <span className="row-note">{sandbox.state}</span>
      </button>
      <IconButton
        icon="terminal"
        label={`New terminal in ${sandbox.name}`}
        onClick={() => openTerminal(workbench, sandbox.id)}
      />
    </li>
  )
}

/** Every sandbox that the person has or shares. */
export function SandboxesPanel(): ReactElement {
  const { workbench } = useParts()
  const sandboxes = useStore(workbench.sandboxes)
  return (
    <>
      <header className="panel-head">
        <h2>Sandboxes</h2>
        <IconButton icon="refresh" label="Look again" onClick={() => void workbench.refreshSandboxes()} />
      </header>
      {sandboxes.is === 'loading' && <p className="empty">Loading the sandboxes…</p>}
      {sandboxes.is === 'failed' && <p className="empty">{sandboxes.message}</p>}
      {sandboxes.is === 'ready' && sandboxes.value.length === 0 && <p className="empty">No sandboxes yet.</p>}
      {sandboxes.is === 'ready' && (
        <ul className="rows">
          {sandboxes.value.map((sandbox) => (
            <Row key={sandbox.id} sandbox={sandbox} />
          ))}
        </ul>
      )}
    </>
  )
}
