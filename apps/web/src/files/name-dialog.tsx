import { type FormEvent, type ReactElement, useState } from 'react'
import { Dialog } from '../shell/dialog.tsx'
import { nameTrouble } from './paths.ts'

/** Asks for the path of something new, or a new one for something old. */
export function NameDialog({
  title,
  initial,
  yes,
  onName,
  onClose,
}: {
  readonly title: string
  readonly initial: string
  readonly yes: string
  readonly onName: (path: string) => void
  readonly onClose: () => void
}): ReactElement {
  const [name, setName] = useState(initial)
  const [isTried, setTried] = useState(false)
  const trouble = nameTrouble(name)
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    setTried(true)
    if (trouble === undefined) onName(name)
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form className="form" onSubmit={submit}>
        <label className="field">
          <span>Path in the workspace</span>
          <input
            autoFocus
            value={name}
            spellCheck={false}
            autoCapitalize="none"
            onChange={(event) => setName(event.target.value)}
            onFocus={(event) => {
              const at = event.target.value.lastIndexOf('/') + 1
              event.target.setSelectionRange(at, event.target.value.length)
            }}
          />
        </label>
        {isTried && trouble !== undefined && (
          <p className="trouble" role="alert">
            {trouble}
          </p>
        )}
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary">
            {yes}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
