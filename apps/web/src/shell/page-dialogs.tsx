import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { displayName } from '../files/display-name.ts'
import { useParts } from '../state/context.ts'
import { shellTexts } from '../texts/shell.ts'
import { Confirm, Dialog } from './dialog.tsx'

/** Confirms pasting several lines. */
export function PasteDialog(): ReactElement | null {
  const { terminals } = useParts()
  const question = useStore(terminals.pasting)
  if (question === undefined) return null
  const { subject: paste, answer } = question
  const { leftOut, notShown } = paste
  return (
    <Confirm title={shellTexts.paste.title(paste.lines)} yes={shellTexts.paste.paste} onAnswer={answer}>
      <p>{shellTexts.paste.mayRun}</p>
      {leftOut > 0 && <p>{shellTexts.paste.removed(leftOut)}</p>}
      <pre className="preview">{paste.preview}</pre>
      {notShown > 0 && <p>{shellTexts.paste.notShown(notShown)}</p>}
    </Confirm>
  )
}

/** Confirms opening a link whose text and target differ. */
export function LinkDialog(): ReactElement | null {
  const { terminals } = useParts()
  const question = useStore(terminals.leaving)
  if (question === undefined) return null
  const { text, address } = question.subject
  return (
    <Confirm title={shellTexts.link.title} yes={shellTexts.link.open} onAnswer={question.answer}>
      <p>{shellTexts.link.text}</p>
      <pre className="preview">{text}</pre>
      <p>{shellTexts.link.address}</p>
      <pre className="preview">{address}</pre>
    </Confirm>
  )
}

/** Confirms closing views with unsaved text. */
export function UnsavedDialog(): ReactElement | null {
  const { dirty } = useParts()
  const question = useStore(dirty.question)
  if (question === undefined) return null
  const { paths, answer } = question
  const [first = ''] = paths
  const what = paths.length === 1 ? displayName(first) : shellTexts.unsaved.files(paths.length)
  return (
    <Dialog title={shellTexts.unsaved.title(what)} onClose={() => answer('cancel')}>
      <div className="dialog-text">
        <p>{shellTexts.unsaved.lost}</p>
        {paths.length > 1 && (
          <ul>
            {paths.map((path) => (
              <li key={path}>{displayName(path)}</li>
            ))}
          </ul>
        )}
      </div>
      <div className="dialog-actions">
        <button type="button" onClick={() => answer('cancel')}>
          {shellTexts.cancel}
        </button>
        <button type="button" className="danger" onClick={() => answer('discard')}>
          {shellTexts.unsaved.discard}
        </button>
        <button type="button" className="primary" onClick={() => answer('save')}>
          {shellTexts.unsaved.save}
        </button>
      </div>
    </Dialog>
  )
}
