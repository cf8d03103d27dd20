import { type FormEvent, type ReactElement, useState } from 'react'
import { Dialog } from '../shell/dialog.tsx'
import { messageOf } from '../state/workbench.ts'
import { shellTexts } from '../texts/shell.ts'

export interface NameDialogTexts {
  readonly title: string
  readonly hint: string
  readonly name: string
  readonly badName: string
  readonly yes: string
  /** While the request runs. */
  readonly busy: string
}

/** Asks for a name and runs a request with it; shows its error and stays open when it fails. */
export function NameDialog({
  texts,
  pattern,
  placeholder,
  run,
  onClose,
}: {
  readonly texts: NameDialogTexts
  /** An empty name must match it too, where the name is optional. */
  readonly pattern: RegExp
  readonly placeholder?: string
  readonly run: (name: string) => Promise<void>
  readonly onClose: () => void
}): ReactElement {
  const [name, setName] = useState('')
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    if (!pattern.test(name)) {
      setProblem(texts.badName)
      return
    }
    setBusy(true)
    setProblem('')
    try {
      await run(name)
    } catch (caught) {
      setProblem(messageOf(caught))
      setBusy(false)
    }
  }
  return (
    <Dialog title={texts.title} onClose={onClose}>
      <form className="form" onSubmit={(event) => void submit(event)} onChange={() => setProblem('')}>
        <p className="dim">{texts.hint}</p>
        <label className="field">
          <span>{texts.name}</span>
          <input
            autoFocus
            value={name}
            placeholder={placeholder}
            maxLength={63}
            spellCheck={false}
            autoCapitalize="none"
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        {problem !== '' && (
          <p className="problem" role="alert">
            {problem}
          </p>
        )}
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            {shellTexts.cancel}
          </button>
          <button type="submit" className="primary" disabled={isBusy}>
            {isBusy ? texts.busy : texts.yes}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
