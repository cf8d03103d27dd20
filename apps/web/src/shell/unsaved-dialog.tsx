import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { shownName } from '../files/shown-name.ts'
import { useParts } from '../state/context.ts'
import { Dialog } from './dialog.tsx'
import { shellTexts } from '../texts/shell.ts'

/** Asks before something that is not saved would be lost. */
export function UnsavedDialog(): ReactElement | null {
  const { dirty } = useParts()
  const question = useStore(dirty.question)
  if (question === undefined) return null
  const { paths, answer } = question
  const [first = ''] = paths
  const what = paths.length === 1 ? shownName(first) : shellTexts.unsaved.files(paths.length)
  return (
    <Dialog title={shellTexts.unsaved.title(what)} onClose={() => answer('cancel')}>
      <div className="dialog-text">
        <p>{shellTexts.unsaved.lost}</p>
        {paths.length > 1 && (
          <ul>
            {paths.map((path) => (
              <li key={path}>{shownName(path)}</li>
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
