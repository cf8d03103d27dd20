import { printable } from '@sandwire/react'
import { type FormEvent, type ReactElement, useEffect, useRef, useState } from 'react'
import { Dialog } from '../shell/dialog.tsx'
import { useParts } from '../state/context.ts'
import { messageOf, sayFailure } from '../state/workbench.ts'
import { findNameProblem } from './paths.ts'
import { fileTexts } from '../texts/files.ts'
import { shellTexts } from '../texts/shell.ts'

/** Asks for the path of something new, or a new one for something old, until that is done: what fails can be tried by another name. */
export function NameDialog({
  title,
  initial,
  yes,
  failure,
  onName,
  onClose,
}: {
  readonly title: string
  readonly initial: string
  readonly yes: string
  /** What could not be done. */
  readonly failure: (path: string) => string
  readonly onName: (path: string) => Promise<void>
  readonly onClose: () => void
}): ReactElement {
  const [name, setName] = useState(initial)
  const { workbench } = useParts()
  const [trouble, setTrouble] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const isGone = useRef(false)
  useEffect(() => {
    isGone.current = false
    return () => void (isGone.current = true)
  }, [])
  const submit = async (): Promise<void> => {
    const wrong = findNameProblem(name)
    setTrouble(wrong)
    if (wrong !== undefined) return
    setBusy(true)
    try {
      await onName(name)
      onClose()
    } catch (caught) {
      const words = sayFailure(failure(name), messageOf(caught))
      if (isGone.current) workbench.tell('error', words)
      else setTrouble(printable(words))
    }
    setBusy(false)
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        className="form"
        onSubmit={(event: FormEvent) => {
          event.preventDefault()
          if (!isBusy) void submit()
        }}
      >
        <label className="field">
          <span>{fileTexts.path}</span>
          <input
            autoFocus
            value={name}
            spellCheck={false}
            autoCapitalize="none"
            onChange={(event) => {
              setName(event.target.value)
              setTrouble(undefined)
            }}
            onFocus={(event) => {
              const at = event.target.value.lastIndexOf('/') + 1
              event.target.setSelectionRange(at, event.target.value.length)
            }}
          />
        </label>
        {trouble !== undefined && (
          <p className="trouble" role="alert">
            {trouble}
          </p>
        )}
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            {shellTexts.cancel}
          </button>
          <button type="submit" className="primary">
            {yes}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
