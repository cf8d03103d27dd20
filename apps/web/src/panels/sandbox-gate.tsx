import { useStore } from '@sandwire/react'
import type { ReactElement, ReactNode } from 'react'
import { startSandbox } from '../api/sandboxes.ts'
import { useParts } from '../state/context.ts'

/** Shows something of the chosen sandbox, or why that cannot be shown. */
export function SandboxGate({
  what,
  children,
}: {
  /** What is to be seen, for the sentence that says why it is not. */
  readonly what: string
  readonly children: (sandbox: string) => ReactNode
}): ReactElement {
  const { workbench } = useParts()
  const current = useStore(workbench.current)
  const sandboxes = useStore(workbench.sandboxes)
  if (sandboxes.is === 'loading') return <p className="empty">Loading the sandboxes…</p>
  const sandbox = sandboxes.is === 'ready' ? sandboxes.value.find(({ id }) => id === current) : undefined
  if (sandbox === undefined) return <p className="empty">Choose a sandbox to see {what}.</p>
  const { id, name, access, state } = sandbox
  if (access === 'viewer')
    return <p className="empty">You watch {name}. Its files are not shared with you.</p>
  if (state === 'running') return <>{children(id)}</>
  const start = async (): Promise<void> => {
    await workbench.attempt(`Cannot start ${name}`, () => startSandbox(id))
    await workbench.refreshSandboxes()
  }
  return (
    <div className="empty">
      <p>
        {name} is {state}. It has to run for {what} to be seen.
      </p>
      {(state === 'stopped' || state === 'failed') && (
        <button type="button" onClick={() => void start()}>
          Start it
        </button>
      )}
    </div>
  )
}
