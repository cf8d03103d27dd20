import { createStore } from '@sandwire/client'
import { type TerminalController, useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { signOut } from '../api/identity.ts'
import { activeTab } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { statusItems } from '../terminals/terminal-status.ts'
import { shellTexts } from '../texts/shell.ts'
import { SaveStatus } from '../versions/save-status.tsx'
import { useSandboxName } from './titles.ts'

const NOTHING = createStore<number | undefined>(undefined)

function TerminalStatus({ controller }: { readonly controller: TerminalController }): ReactElement {
  const state = useStore(controller.state)
  const ms = useStore(controller.handle?.roundTripMs ?? NOTHING)
  return (
    <>
      {statusItems(state, ms).map(({ text, hint }) => (
        <span key={hint ?? text} title={hint}>
          {text}
        </span>
      ))}
    </>
  )
}

/** State of the focused pane, and the user. */
export function StatusBar(): ReactElement {
  const { workbench, terminals, dirty } = useParts()
  const layout = useStore(workbench.layout)
  const user = useStore(workbench.user)
  const focus = activeTab(layout)?.focus ?? ''
  const view = layout.views[focus]
  const sandboxName = useSandboxName(view?.sandbox ?? '')
  const controller = terminals.find(focus)
  const leave = async (): Promise<void> => {
    await workbench.attempt(shellTexts.account.cannotSignOut, signOut)
    location.assign('/signin')
  }
  return (
    <footer className="status-bar">
      {view !== undefined && <span className="status-sandbox">{sandboxName}</span>}
      {controller !== undefined && <TerminalStatus key={focus} controller={controller} />}
      <SaveStatus />
      <span className="status-space" />
      {user.kind === 'ready' && user.value !== undefined && (
        <span className="status-person">{shellTexts.account.signedInAs(user.value.name)}</span>
      )}
      {user.kind === 'ready' && user.value?.guest === false && (
        <button type="button" className="link" onClick={() => workbench.showOverlay('usage')}>
          {shellTexts.usage.title}
        </button>
      )}
      <button
        type="button"
        className="link"
        onClick={() => void dirty.leave([...dirty.views.get().keys()], () => void leave())}
      >
        {shellTexts.account.signOut}
      </button>
    </footer>
  )
}
