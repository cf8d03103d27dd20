import { type ReactElement, useState } from 'react'
import { FormDialog } from '../shell/dialog.tsx'
import { messageOf } from '../state/workbench.ts'

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
  const submit = async (): Promise<void> => {
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
    <FormDialog
      title={texts.title}
      problem={problem}
      yes={texts.yes}
      busy={isBusy ? texts.busy : undefined}
      onSubmit={submit}
      onChange={() => setProblem('')}
      onClose={onClose}
    >
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
    </FormDialog>
  )
}
