import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import { useParts } from '../state/context.ts'
import { versionTexts } from '../texts/versions.ts'
import { describeSaved } from './describe-saved.ts'

/** How often the age of the newest version is updated. */
const TICK_MS = 1_000

/** Whether the files of the selected sandbox are saved; opens the versions. */
export function SaveStatus(): ReactElement | null {
  const { workbench, fileStatuses } = useParts()
  const status = useStore(fileStatuses.status)
  const [nowMs, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS)
    return () => clearInterval(timer)
  }, [])
  if (status === undefined) return null
  // The server's clock may be ahead.
  const text = status.isRestoring ? versionTexts.status.restoring : describeSaved(status.saved, nowMs)
  if (text === undefined) return null
  return (
    <button
      type="button"
      className={`link save-status ${status.saved.error === null ? '' : 'failed'}`}
      title={versionTexts.status.show}
      onClick={() => workbench.showPanel('versions')}
    >
      {text}
    </button>
  )
}
