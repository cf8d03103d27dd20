import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { useParts } from '../state/context.ts'
import { shellTexts } from '../texts/shell.ts'
import { IconButton } from './icon.tsx'

/** Temporary notices and running uploads, announced to screen readers. */
export function Notices(): ReactElement {
  const { workbench, uploads } = useParts()
  const notices = useStore(workbench.notices)
  const running = useStore(uploads.running)
  return (
    <div className="notices" role="status" aria-live="polite">
      {running.map(({ id, text, sentBytes, totalBytes, stop }) => (
        <div key={`upload-${id}`} className="notice info">
          <div className="notice-progress">
            <span>{text}</span>
            <progress aria-label={text} value={sentBytes} max={Math.max(1, totalBytes)} />
          </div>
          <button type="button" onClick={stop}>
            {shellTexts.notices.cancelUpload}
          </button>
        </div>
      ))}
      {notices.map(({ id, kind, text, action }) => (
        <p key={id} className={`notice ${kind}`}>
          <span className="notice-text">{text}</span>
          {action !== undefined && (
            <button
              type="button"
              onClick={() => {
                workbench.dismiss(id)
                action.run()
              }}
            >
              {action.label}
            </button>
          )}
          <IconButton icon="close" label={shellTexts.notices.dismiss} onClick={() => workbench.dismiss(id)} />
        </p>
      ))}
    </div>
  )
}
