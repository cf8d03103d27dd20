import { type FormEvent, type ReactElement, useId, useState } from 'react'
import { inFormWords } from '../../api/form-words.ts'
import { createSandbox, type Network } from '../../api/sandboxes.ts'
import { Dialog } from '../../shell/dialog.tsx'
import { messageOf } from '../../state/workbench.ts'
import type { FirstCommand } from '../../terminals/terminal-shelf.ts'
import { planSandbox } from './new-sandbox.ts'

const NETWORKS: Readonly<Record<Network, { readonly label: string; readonly meaning: string }>> = {
  none: { label: 'None', meaning: 'Nothing in it reaches the network.' },
  allowlist: { label: 'Listed hosts', meaning: 'Only the hosts below can be reached.' },
  open: { label: 'Open', meaning: 'Everything on the public internet can be reached.' },
}

/** What the fields are called, for refusals that name them as the server does. */
const WORDS = {
  name: 'Cannot use this name',
  'network.allow': 'Cannot use these hosts',
  'network.policy': 'Cannot use this network',
}

export interface MadeSandbox {
  readonly id: string
  /** What to run in it first. */
  readonly firstCommand?: FirstCommand
}

/** Asks for what a new sandbox is to be like, and makes it. */
export function CreateDialog({
  networks,
  onMade,
  onClose,
}: {
  /** Those that can be chosen, the usual one first. */
  readonly networks: readonly [Network, ...Network[]]
  readonly onMade: (made: MadeSandbox) => void
  readonly onClose: () => void
}): ReactElement {
  const [name, setName] = useState('')
  const [policy, setPolicy] = useState<Network>(networks[0])
  const [hosts, setHosts] = useState('')
  const [repository, setRepository] = useState('')
  const [trouble, setTrouble] = useState('')
  const [isBusy, setBusy] = useState(false)
  const group = useId()
  const make = async (): Promise<void> => {
    const plan = planSandbox({ name, policy, hosts, repository })
    if (plan.is === 'refused') {
      setTrouble(plan.why)
      return
    }
    setBusy(true)
    setTrouble('')
    try {
      const { id } = await createSandbox(plan.sandbox)
      onMade({ id, ...(plan.firstCommand === undefined ? {} : { firstCommand: plan.firstCommand }) })
    } catch (caught) {
      setTrouble(inFormWords(messageOf(caught), WORDS))
      setBusy(false)
    }
  }
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    void make()
  }
  return (
    <Dialog title="New sandbox" onClose={onClose}>
      {/* What was refused is not what is there once anything was changed. */}
      <form className="form" onSubmit={submit} onChange={() => setTrouble('')}>
        <label className="field">
          <span>Name</span>
          <input
            autoFocus
            value={name}
            placeholder="a name is made up when this is empty"
            maxLength={63}
            spellCheck={false}
            autoCapitalize="none"
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <fieldset className="choices">
          <legend>Network</legend>
          {networks.map((choice) => (
            <label key={choice} className="choice">
              <input
                type="radio"
                name={group}
                checked={policy === choice}
                onChange={() => setPolicy(choice)}
              />
              <span>
                <strong>{NETWORKS[choice].label}</strong>
                <small>{NETWORKS[choice].meaning}</small>
              </span>
            </label>
          ))}
          {networks.length === 1 && (
            <p className="dim">
              Sandboxes are not isolated on this machine, so nothing can be kept from them.
            </p>
          )}
        </fieldset>
        {policy === 'allowlist' && (
          <label className="field">
            <span>Hosts, such as github.com, *.npmjs.org or set:npm</span>
            <textarea
              rows={3}
              value={hosts}
              spellCheck={false}
              onChange={(event) => setHosts(event.target.value)}
            />
          </label>
        )}
        {policy === 'none' ? (
          <p className="dim">To begin with a git repository, it needs a network.</p>
        ) : (
          <label className="field">
            <span>Git repository to begin with (optional)</span>
            <input
              value={repository}
              placeholder="https://…"
              spellCheck={false}
              onChange={(event) => setRepository(event.target.value)}
            />
          </label>
        )}
        {trouble !== '' && (
          <p className="trouble" role="alert">
            {trouble}
          </p>
        )}
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={isBusy}>
            {isBusy ? 'Making the sandbox…' : 'Make it'}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
