import { useStore } from '@sandwire/react'
import type { ReactElement, ReactNode } from 'react'
import { startSandbox } from '../api/sandboxes.ts'
import { useParts } from '../state/context.ts'
import { sandboxTexts } from '../texts/sandboxes.ts'

/** Renders its children for the selected sandbox if it is running, and otherwise says what to do. */
export function SandboxGate({
  action,
  children,
}: {
  /** What a running sandbox is needed for: "browse files". */
  readonly action: string
  readonly children: (sandbox: string) => ReactNode
}): ReactElement {
  const { workbench } = useParts()
  const current = useStore(workbench.current)
  const sandboxes = useStore(workbench.sandboxes)
  if (sandboxes.kind === 'loading') return <p className="empty">{sandboxTexts.loading}</p>
  const sandbox = sandboxes.kind === 'ready' ? sandboxes.value.find(({ id }) => id === current) : undefined
  if (sandbox === undefined) return <p className="empty">{sandboxTexts.gate.select(action)}</p>
  const { id, name, access, state } = sandbox
  if (access === 'viewer') return <p className="empty">{sandboxTexts.gate.notShared(name)}</p>
  if (state === 'running') return <>{children(id)}</>
  const start = async (): Promise<void> => {
    await workbench.attempt(sandboxTexts.cannotStart(name), () => startSandbox(id))
    await workbench.refreshSandboxes()
  }
  return (
    <div className="empty">
      <p>{sandboxTexts.gate.start(name, sandboxTexts.states[state], action)}</p>
      {(state === 'stopped' || state === 'failed') && (
        <button type="button" onClick={() => void start()}>
          {sandboxTexts.gate.startButton}
        </button>
      )}
    </div>
  )
}
