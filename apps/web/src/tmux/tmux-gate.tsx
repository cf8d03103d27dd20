import { useStore } from '@sandwire/react'
import type { ReactElement, ReactNode } from 'react'
import { startSandbox } from '../api/sandboxes.ts'
import { useParts } from '../state/context.ts'
import { sandboxTexts } from '../texts/sandboxes.ts'
import { tmuxTexts } from '../texts/tmux.ts'

/** Renders its children while the sandbox runs, and otherwise offers to start it. */
export function TmuxGate({
  sandbox,
  children,
}: {
  /** Id or name. */
  readonly sandbox: string
  readonly children: ReactNode
}): ReactElement {
  const { workbench } = useParts()
  const sandboxes = useStore(workbench.sandboxes)
  const found =
    sandboxes.kind === 'ready'
      ? sandboxes.value.find(({ id, name }) => id === sandbox || name === sandbox)
      : undefined
  if (found === undefined || found.state === 'running') return <>{children}</>
  const { id, name, state } = found
  const start = async (): Promise<void> => {
    await workbench.attempt(sandboxTexts.cannotStart(name), () => startSandbox(id))
    await workbench.refreshSandboxes()
  }
  return (
    <div className="empty">
      <p>{sandboxTexts.gate.start(name, sandboxTexts.states[state], tmuxTexts.use)}</p>
      {(state === 'stopped' || state === 'failed') && (
        <button type="button" onClick={() => void start()}>
          {sandboxTexts.gate.startButton}
        </button>
      )}
    </div>
  )
}
