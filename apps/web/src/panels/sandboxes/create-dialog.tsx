import { type FormEvent, type ReactElement, useId, useState } from 'react'
import { createSandbox, type Network } from '../../api/sandboxes.ts'
import { Dialog } from '../../shell/dialog.tsx'
import { messageOf } from '../../state/workbench.ts'
import type { FirstCommand } from '../../terminals/terminals.ts'
import { sandboxTexts } from '../../texts/sandboxes.ts'
import { shellTexts } from '../../texts/shell.ts'
import { planSandbox } from './new-sandbox.ts'

const { create: texts } = sandboxTexts

export interface MadeSandbox {
  readonly id: string
  /** The command to run in the first terminal. */
  readonly firstCommand?: FirstCommand
}

/** The form for a new sandbox. */
export function CreateDialog({
  networks,
  onMade,
  onClose,
}: {
  /** The networks on offer, default first. */
  readonly networks: readonly [Network, ...Network[]]
  readonly onMade: (made: MadeSandbox) => void
  readonly onClose: () => void
}): ReactElement {
  const [name, setName] = useState('')
  const [policy, setPolicy] = useState<Network>(networks[0])
  const [hosts, setHosts] = useState('')
  const [repository, setRepository] = useState('')
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const group = useId()
  const make = async (): Promise<void> => {
    const plan = planSandbox({ name, policy, hosts, repository })
    if (plan.kind === 'refused') {
      setProblem(plan.problem)
      return
    }
    setBusy(true)
    setProblem('')
    try {
      const { id } = await createSandbox(plan.sandbox)
      onMade({ id, ...(plan.firstCommand === undefined ? {} : { firstCommand: plan.firstCommand }) })
    } catch (caught) {
      setProblem(messageOf(caught))
      setBusy(false)
    }
  }
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    void make()
  }
  return (
    <Dialog title={texts.title} onClose={onClose}>
      {/* An error is stale once the form changes. */}
      <form className="form" onSubmit={submit} onChange={() => setProblem('')}>
        <label className="field">
          <span>{texts.name}</span>
          <input
            autoFocus
            value={name}
            placeholder={texts.optional}
            maxLength={63}
            spellCheck={false}
            autoCapitalize="none"
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <fieldset className="choices">
          <legend>{texts.network}</legend>
          {networks.map((choice) => (
            <label key={choice} className="choice">
              <input
                type="radio"
                name={group}
                checked={policy === choice}
                onChange={() => setPolicy(choice)}
              />
              <span>
                <strong>{texts.networks[choice].label}</strong>
                <small>{texts.networks[choice].hint}</small>
              </span>
            </label>
          ))}
          {networks.length === 1 && <p className="dim">{texts.notIsolated}</p>}
        </fieldset>
        {policy === 'allowlist' && (
          <label className="field">
            <span>{texts.hosts}</span>
            <textarea
              rows={3}
              value={hosts}
              spellCheck={false}
              onChange={(event) => setHosts(event.target.value)}
            />
          </label>
        )}
        {policy === 'none' ? (
          <p className="dim">{texts.repositoryNeedsNetwork}</p>
        ) : (
          <label className="field">
            <span>{texts.repository}</span>
            <input
              value={repository}
              placeholder="https://…"
              spellCheck={false}
              onChange={(event) => setRepository(event.target.value)}
            />
          </label>
        )}
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
            {isBusy ? texts.creating : texts.create}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
