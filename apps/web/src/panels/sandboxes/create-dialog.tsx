import { type ReactElement, useEffect, useId, useState } from 'react'
import { createSandbox, type Network } from '../../api/sandboxes.ts'
import { readUsage } from '../../api/usage.ts'
import { FormDialog } from '../../shell/dialog.tsx'
import { messageOf } from '../../state/workbench.ts'
import type { FirstCommand } from '../../terminals/terminals.ts'
import { sandboxTexts } from '../../texts/sandboxes.ts'
import { networksFor, planSandbox } from './new-sandbox.ts'

const { create: texts } = sandboxTexts

export interface CreatedSandbox {
  readonly id: string
  /** The command to run in the first terminal. */
  readonly firstCommand?: FirstCommand
}

/** The networks that the operator allows; undefined until they are known. The server checks them in any case. */
function useAllowedNetworks(): readonly Network[] | undefined {
  const [networks, setNetworks] = useState<readonly Network[]>()
  useEffect(() => {
    const aborter = new AbortController()
    readUsage(aborter.signal).then(
      ({ sandbox }) => setNetworks(sandbox.networks),
      // All networks are offered; the server refuses what it does not allow.
      () => undefined,
    )
    return () => aborter.abort()
  }, [])
  return networks
}

/** The form for a new sandbox. */
export function CreateDialog({
  isIsolated,
  onCreated,
  onClose,
}: {
  /** False if the server runs sandboxes without isolation. */
  readonly isIsolated: boolean
  readonly onCreated: (created: CreatedSandbox) => void
  readonly onClose: () => void
}): ReactElement {
  const networks = networksFor(isIsolated, useAllowedNetworks())
  const [name, setName] = useState('')
  const [chosen, setNetwork] = useState<Network>()
  const network = chosen ?? networks[0] ?? 'none'
  const [hosts, setHosts] = useState('')
  const [repository, setRepository] = useState('')
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const group = useId()
  const create = async (): Promise<void> => {
    const plan = planSandbox({ name, network, hosts, repository })
    if (plan.kind === 'invalid') {
      setProblem(plan.problem)
      return
    }
    setBusy(true)
    setProblem('')
    try {
      const { id } = await createSandbox(plan.sandbox)
      onCreated({ id, ...(plan.firstCommand === undefined ? {} : { firstCommand: plan.firstCommand }) })
    } catch (caught) {
      setProblem(messageOf(caught))
      setBusy(false)
    }
  }
  return (
    <FormDialog
      title={texts.title}
      problem={problem}
      yes={texts.create}
      busy={isBusy ? texts.creating : undefined}
      onSubmit={create}
      onChange={() => setProblem('')}
      onClose={onClose}
    >
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
              checked={network === choice}
              onChange={() => setNetwork(choice)}
            />
            <span>
              <strong>{texts.networks[choice].label}</strong>
              <small>{texts.networks[choice].hint}</small>
            </span>
          </label>
        ))}
        {!isIsolated && <p className="dim">{texts.notIsolated}</p>}
      </fieldset>
      {network === 'allowlist' && (
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
      {network === 'none' ? (
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
    </FormDialog>
  )
}
