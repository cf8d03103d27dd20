import { printable } from '@sandwire/react'
import { type ReactElement, useCallback, useEffect, useId, useState } from 'react'
import {
  type CreatedGrant,
  createGrant,
  type Grant,
  type GrantRole,
  listGrants,
  revokeGrant,
} from '../api/grants.ts'
import { Dialog } from '../shell/dialog.tsx'
import { formatRelativeTime } from '../shell/format-time.ts'
import { useParts } from '../state/context.ts'
import { type Loaded, messageOf } from '../state/workbench.ts'
import { sharingTexts } from '../texts/sharing.ts'
import {
  markedName,
  parseName,
  type Participant,
  participantActivity,
  participantName,
} from './participants.ts'

const LIFETIMES = [
  { seconds: 60 * 60, label: sharingTexts.lifetimes.hour },
  { seconds: 24 * 60 * 60, label: sharingTexts.lifetimes.day },
  { seconds: 7 * 24 * 60 * 60, label: sharingTexts.lifetimes.week },
] as const

const NO_PARTICIPANTS: readonly Participant[] = []
const ROLES: readonly GrantRole[] = ['viewer', 'collaborator']

/** Poll interval while the dialog is open: a link may be used at any moment. */
const REFRESH_MS = 3_000

function holderName(name: string | null): string {
  return name === null ? sharingTexts.unknownUser : markedName(parseName(printable(name)))
}

/** Creates share links for a terminal or conversation, and lists participants and grants. */
export function ShareDialog({
  title = sharingTexts.title,
  roles = sharingTexts.roles,
  sandbox,
  session,
  participants = NO_PARTICIPANTS,
  onClose,
}: {
  readonly title?: string
  readonly roles?: Readonly<Record<GrantRole, { readonly label: string; readonly hint: string }>>
  readonly sandbox: string
  /** Of a conversation: its id. */
  readonly session: string
  readonly participants?: readonly Participant[]
  readonly onClose: () => void
}): ReactElement {
  const { workbench } = useParts()
  const [role, setRole] = useState<GrantRole>('viewer')
  const [seconds, setSeconds] = useState<number>(LIFETIMES[1].seconds)
  const [created, setCreated] = useState<CreatedGrant>()
  const [grants, setGrants] = useState<Loaded<readonly Grant[]>>({ kind: 'loading' })
  const [isBusy, setBusy] = useState(false)
  const roleName = useId()

  const refresh = useCallback(async () => {
    try {
      const all = await listGrants(sandbox)
      setGrants({
        kind: 'ready',
        value: all.filter((grant) => grant.session === null || grant.session === session),
      })
    } catch (caught) {
      // Keeps the known grants; reports the error only if there are none.
      setGrants((old) => (old.kind === 'ready' ? old : { kind: 'failed', message: messageOf(caught) }))
    }
  }, [sandbox, session])
  const present = participants.length
  useEffect(() => {
    void refresh()
    const timer = setInterval(() => void refresh(), REFRESH_MS)
    return () => clearInterval(timer)
  }, [refresh, present])

  const create = async (): Promise<void> => {
    setBusy(true)
    const grant = await workbench.attempt(sharingTexts.cannotCreate, () =>
      createGrant({ session, role, expiresSeconds: seconds }),
    )
    setBusy(false)
    if (grant === undefined) return
    setCreated(grant)
    await refresh()
  }
  const revoke = async (grant: string, endsSessions: boolean): Promise<void> => {
    await workbench.attempt(sharingTexts.cannotRevoke, () => revokeGrant(grant, endsSessions))
    if (created?.grant === grant) setCreated(undefined)
    await refresh()
  }

  return (
    <Dialog title={title} onClose={onClose}>
      <fieldset className="choices">
        <legend>{sharingTexts.access}</legend>
        {ROLES.map((choice) => (
          <label key={choice} className="choice">
            <input type="radio" name={roleName} checked={role === choice} onChange={() => setRole(choice)} />
            <span>
              <strong>{roles[choice].label}</strong>
              <small>{roles[choice].hint}</small>
            </span>
          </label>
        ))}
      </fieldset>
      <label className="field">
        <span>{sharingTexts.expires}</span>
        <select value={seconds} onChange={(event) => setSeconds(Number(event.target.value))}>
          {LIFETIMES.map(({ seconds: value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <div className="dialog-actions">
        <button type="button" onClick={onClose}>
          {sharingTexts.close}
        </button>
        <button type="button" className="primary" disabled={isBusy} onClick={() => void create()}>
          {isBusy ? sharingTexts.creating : sharingTexts.create}
        </button>
      </div>
      {created?.link !== undefined && <CreatedLink link={created.link} />}
      {participants.length > 0 && <PresentRows participants={participants} />}
      <GrantRows grants={grants} onRevoke={(...choice) => void revoke(...choice)} />
    </Dialog>
  )
}

function CreatedLink({ link }: { readonly link: string }): ReactElement {
  const [isCopied, setCopied] = useState(false)
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(link)
      setCopied(true)
    } catch {
      // The browser denies clipboard access; the text is selected, ready to copy.
    }
  }
  return (
    <div className="made-link">
      <label className="field">
        <span>{sharingTexts.linkHint}</span>
        <input readOnly value={link} onFocus={(event) => event.target.select()} />
      </label>
      <button type="button" onClick={() => void copy()}>
        {isCopied ? sharingTexts.copied : sharingTexts.copy}
      </button>
    </div>
  )
}

/** Grants on the terminal. */
function GrantRows({
  grants,
  onRevoke,
}: {
  readonly grants: Loaded<readonly Grant[]>
  readonly onRevoke: (grant: string, endsSessions: boolean) => void
}): ReactElement {
  const [endsSessions, setEndsSessions] = useState(false)
  if (grants.kind === 'loading') return <p className="dim">{sharingTexts.loading}</p>
  if (grants.kind === 'failed') return <p className="dim">{sharingTexts.retrying(grants.message)}</p>
  if (grants.value.length === 0) return <p className="dim">{sharingTexts.notShared}</p>
  return (
    <section>
      <h3 className="dim">{sharingTexts.sharedWith}</h3>
      <ul className="rows bordered" aria-label={sharingTexts.sharedWith}>
        {grants.value.map(({ grant, name, role, session, state, expiresMs }) => (
          <li key={grant} className="row">
            <span className="row-text">
              {state === 'open' ? sharingTexts.unusedLink : holderName(name)}
              <small>
                {[
                  role === 'viewer' ? sharingTexts.viewOnly : sharingTexts.canType,
                  ...(session === null ? [sharingTexts.wholeSandbox] : []),
                  sharingTexts.expiresAt(formatRelativeTime(expiresMs, Date.now())),
                ].join(' · ')}
              </small>
            </span>
            <button type="button" className="danger" onClick={() => onRevoke(grant, endsSessions)}>
              {sharingTexts.revoke}
            </button>
          </li>
        ))}
      </ul>
      {grants.value.some(canStartSessions) && (
        <label className="check">
          <input
            type="checkbox"
            checked={endsSessions}
            onChange={(event) => setEndsSessions(event.target.checked)}
          />
          {sharingTexts.endsSessions}
        </label>
      )}
    </section>
  )
}

/** True when the holder of the grant can start terminals and commands of their own. */
function canStartSessions({ session, role }: Grant): boolean {
  return session === null && role === 'collaborator'
}

/** The participants of a terminal. */
function PresentRows({ participants }: { readonly participants: readonly Participant[] }): ReactElement {
  return (
    <section>
      <h3 className="dim">{sharingTexts.here}</h3>
      <ul className="rows bordered" aria-label={sharingTexts.here}>
        {participants.map((participant) => (
          <li key={participant.id} className="row">
            <span className="row-text">
              {participantName(participant)}
              <small>{participantActivity(participant)}</small>
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
