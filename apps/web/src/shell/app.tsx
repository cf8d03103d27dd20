import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect } from 'react'
import { useParts } from '../state/context.ts'
import { shellTexts } from '../texts/shell.ts'
import { Commands } from './commands.ts'
import { MainArea } from './main-area.tsx'
import { Notices } from './notices.tsx'
import { Overlays } from './overlays.tsx'
import { LinkDialog, PasteDialog, UnsavedDialog } from './page-dialogs.tsx'
import { SideBar } from './side-bar.tsx'
import { StatusBar } from './status-bar.tsx'
import { useDocumentTitle } from './titles.ts'

/** The page, or the sign-in prompt. */
export function App(): ReactElement {
  const { workbench, dirty } = useParts()
  const hasUnsaved = useStore(dirty.views).size > 0
  const user = useStore(workbench.user)
  if (user.kind === 'loading') return <p className="boot">{shellTexts.loading}</p>
  if (user.kind === 'failed') return <p className="boot">{shellTexts.reloadToRetry(user.message)}</p>
  const isOut = user.value === undefined
  return (
    <>
      {(!isOut || hasUnsaved) && (
        <div hidden={isOut}>
          <WorkbenchPage />
        </div>
      )}
      {isOut && <SignedOut hasUnsaved={hasUnsaved} />}
    </>
  )
}

function WorkbenchPage(): ReactElement {
  const parts = useParts()
  useDocumentTitle()
  useEffect(() => new Commands(parts).listen(window), [parts])
  // Agents that begin to wait are reported, whatever the page shows.
  useEffect(() => void parts.agents.refresh(), [parts])
  return (
    <div className="workbench">
      <SideBar />
      <MainArea />
      <StatusBar />
      <Notices />
      <PasteDialog />
      <LinkDialog />
      <UnsavedDialog />
      <Overlays />
    </div>
  )
}

/** Shown when the user is signed out. */
function SignedOut({ hasUnsaved }: { readonly hasUnsaved: boolean }): ReactElement {
  return (
    <main className="boot">
      <h1>Sandwire</h1>
      <p>{shellTexts.account.signedOut}</p>
      {hasUnsaved && <p>{shellTexts.account.keepUnsaved}</p>}
      {/* Leaving this page would lose unsaved text. */}
      <a className="button primary" href="/signin" target={hasUnsaved ? '_blank' : undefined} rel="noopener">
        {shellTexts.account.signIn}
      </a>
    </main>
  )
}
