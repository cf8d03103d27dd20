import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect } from 'react'
import { useParts } from '../state/context.ts'
import { Commands } from './commands.ts'
import { useDocumentTitle } from './document-title.ts'
import { MainArea } from './main-area.tsx'
import { Notices } from './notices.tsx'
import { Overlays } from './overlays.tsx'
import { LinkDialog } from './link-dialog.tsx'
import { PasteDialog } from './paste-dialog.tsx'
import { SideBar } from './side-bar.tsx'
import { SignedOut } from './signed-out.tsx'
import { StatusBar } from './status-bar.tsx'
import { UnsavedDialog } from './unsaved-dialog.tsx'
import { shellTexts } from '../texts/shell.ts'

/** The page, or why there is none. */
export function App(): ReactElement {
  const { workbench, dirty } = useParts()
  const hasUnsaved = useStore(dirty.views).size > 0
  const person = useStore(workbench.person)
  if (person.is === 'loading') return <p className="boot">{shellTexts.loading}</p>
  if (person.is === 'failed') return <p className="boot">{shellTexts.reloadToRetry(person.message)}</p>
  const isOut = person.value === undefined
  return (
    <>
      {(!isOut || hasUnsaved) && (
        <div hidden={isOut}>
          <Desk />
        </div>
      )}
      {isOut && <SignedOut hasUnsaved={hasUnsaved} />}
    </>
  )
}

function Desk(): ReactElement {
  const parts = useParts()
  useDocumentTitle()
  useEffect(() => new Commands(parts).listen(window), [parts])
  return (
    <div className="desk">
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
