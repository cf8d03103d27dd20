import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { shownName } from '../files/shown-name.ts'
import { useParts } from '../state/context.ts'
import { Dialog } from './dialog.tsx'

/** Asks before something that is not saved would be lost. */
export function UnsavedDialog(): ReactElement | null {
  const { dirty } = useParts()
  const question = useStore(dirty.question)
  if (question === undefined) return null
  const { paths, answer } = question
  const [first = ''] = paths
  const what = paths.length === 1 ? shownName(first) : `${paths.length} files`
  return (
    <Dialog title={`Save ${what} first?`} onClose={() => answer('cancel')}>
      <div className="dialog-text">
        <p>What you changed is not saved. If you discard it, it is lost.</p>
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
          Cancel
        </button>
        <button type="button" className="danger" onClick={() => answer('discard')}>
          Discard
        </button>
        <button type="button" className="primary" onClick={() => answer('save')}>
          Save
        </button>
      </div>
    </Dialog>
  )
}
