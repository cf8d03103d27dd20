import { type TerminalController, useStore } from '@sandwire/react'
import { type ReactElement, useCallback, useEffect, useId, useState } from 'react'
import {
  createGrant,
  type Grant,
  type GrantMade,
  type GrantRole,
  listGrants,
  revokeGrant,
} from '../api/grants.ts'
import { Dialog } from '../shell/dialog.tsx'
import { useParts } from '../state/context.ts'
import { type Loaded, messageOf } from '../state/workbench.ts'
import { GrantRows } from './grant-rows.tsx'
import { peopleOf } from './people.ts'
import { PresentRows } from './present-rows.tsx'

const LIFETIMES = [
  { seconds: 60 * 60, label: 'One hour' },
  { seconds: 24 * 60 * 60, label: 'One day' },
  { seconds: 7 * 24 * 60 * 60, label: 'One week' },
] as const

/** What is shared, said plainly; with the role, as whoever is given it is told that when they join. */
const CHOICES: readonly {
  readonly role: GrantRole
  readonly label: string
  readonly meaning: string
}[] = [
  {
    role: 'viewer',
    label: 'Watch',
    meaning: 'They see this terminal and who is in it. They can type nothing, and see nothing else.',
  },
  {
    role: 'collaborator',
    label: 'Type as well',
    meaning:
      'They can type into this terminal. Whoever can type has a shell, and with it every file and process of this sandbox.',
  },
]

/** How often what is shared is asked for while somebody looks: a link may be used at any moment. */
const REFRESH_MS = 3_000

/** Makes links to a terminal, lists and withdraws those that were made, and says who is there. */
export function ShareDialog({
  sandbox,
  session,
  controller,
  onClose,
}: {
  readonly sandbox: string
  readonly session: string
  readonly controller: TerminalController
  readonly onClose: () => void
}): ReactElement {
  const { workbench } = useParts()
  const [role, setRole] = useState<GrantRole>('viewer')
  const [seconds, setSeconds] = useState<number>(LIFETIMES[1].seconds)
  const [made, setMade] = useState<GrantMade>()
  const [grants, setGrants] = useState<Loaded<readonly Grant[]>>({ is: 'loading' })
  const [isBusy, setBusy] = useState(false)
  const roleName = useId()

  const refresh = useCallback(async () => {
    try {
      const all = await listGrants(sandbox)
      setGrants({
        is: 'ready',
        value: all.filter((grant) => grant.session === null || grant.session === session),
      })
    } catch (caught) {
      // What was known stays; a list that never came says why.
      setGrants((old) => (old.is === 'ready' ? old : { is: 'failed', message: messageOf(caught) }))
    }
  }, [sandbox, session])
  const people = peopleOf(useStore(controller.state))
  const present = people.length
  useEffect(() => {
    void refresh()
    const timer = setInterval(() => void refresh(), REFRESH_MS)
    return () => clearInterval(timer)
  }, [refresh, present])

  const make = async (): Promise<void> => {
    setBusy(true)
    const grant = await workbench.attempt('Cannot share', () =>
      createGrant({ session, role, expiresSeconds: seconds }),
    )
    setBusy(false)
    if (grant === undefined) return
    setMade(grant)
    await refresh()
  }
  const revoke = async (grant: string): Promise<void> => {
    await workbench.attempt('Cannot withdraw it', () => revokeGrant(grant))
    if (made?.grant === grant) setMade(undefined)
    await refresh()
  }

  return (
    <Dialog title="Share this terminal" onClose={onClose}>
      <fieldset className="choices">
        <legend>What they may do</legend>
        {CHOICES.map(({ role: choice, label, meaning }) => (
          <label key={choice} className="choice">
            <input type="radio" name={roleName} checked={role === choice} onChange={() => setRole(choice)} />
            <span>
              <strong>{label}</strong> <span className="dim">as {choice}</span>
              <small>{meaning}</small>
            </span>
          </label>
        ))}
      </fieldset>
      <label className="field">
        <span>Until</span>
        <select value={seconds} onChange={(event) => setSeconds(Number(event.target.value))}>
          {LIFETIMES.map(({ seconds: value, label }) => (
            <option key={value} value={value}>
              {label} from now
            </option>
          ))}
        </select>
      </label>
      <div className="dialog-actions">
        <button type="button" onClick={onClose}>
          Close
        </button>
        <button type="button" className="primary" disabled={isBusy} onClick={() => void make()}>
          {isBusy ? 'Making the link…' : 'Make a link'}
        </button>
      </div>
      {made?.link !== undefined && <MadeLink link={made.link} />}
      <PresentRows people={people} />
      <GrantRows grants={grants} onRevoke={(grant) => void revoke(grant)} />
    </Dialog>
  )
}

function MadeLink({ link }: { readonly link: string }): ReactElement {
  const [isCopied, setCopied] = useState(false)
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(link)
      setCopied(true)
    } catch {
      // The browser does not allow it; the text is selected for the person to copy.
    }
  }
  return (
    <div className="made-link">
      <label className="field">
        <span>The link works once, for one person. It is shown only now.</span>
        <input readOnly value={link} onFocus={(event) => event.target.select()} />
      </label>
      <button type="button" onClick={() => void copy()}>
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </div>
  )
}
