import { type ReactElement, useCallback, useEffect, useState } from 'react'
import { type HeldGrant, leaveGrant, listHeldGrants } from '../../api/grants.ts'
import { IconButton } from '../../shell/icon-button.tsx'
import { joinSession } from '../../shell/open-terminal.ts'
import { agoOrAhead } from '../../shell/time-text.ts'
import { useParts } from '../../state/context.ts'

/** What others share with this person, one session each. Whole sandboxes are in the list of sandboxes. */
export function SharedRows(): ReactElement | null {
  const { workbench } = useParts()
  const [grants, setGrants] = useState<readonly HeldGrant[]>([])
  const refresh = useCallback(async () => {
    const held = await workbench.attempt('Cannot list what is shared with you', listHeldGrants)
    if (held === undefined) return
    for (const grant of held) workbench.names.learnShared(grant.sandbox, grant)
    setGrants(held)
  }, [workbench])
  useEffect(() => void refresh(), [refresh])
  if (grants.length === 0) return null
  const leave = async (grant: string): Promise<void> => {
    await workbench.attempt('Cannot leave it', () => leaveGrant(grant))
    await refresh()
  }
  return (
    <section aria-label="Shared with you">
      <header className="panel-head">
        <h2>Shared with you</h2>
      </header>
      <ul className="rows" id="shared">
        {grants.map(({ grant, sandbox, sandboxName, session, role, owner, expiresMs }) => (
          <li key={grant} className="row">
            <button
              type="button"
              className="row-main"
              onClick={() => {
                if (session === null) workbench.choose(sandbox)
                else joinSession(workbench, sandbox, session)
              }}
            >
              <span className="row-text">
                <span className="row-name">
                  {session === null ? (sandboxName ?? 'A sandbox') : 'One session'}
                </span>
                <small>
                  by {owner}, you {role === 'viewer' ? 'watch' : 'work'}, ends{' '}
                  {agoOrAhead(expiresMs, Date.now())}
                </small>
              </span>
            </button>
            <IconButton
              icon="close"
              label={`Leave ${session === null ? (sandboxName ?? 'the sandbox') : 'the session'} of ${owner}`}
              onClick={() => void leave(grant)}
            />
          </li>
        ))}
      </ul>
    </section>
  )
}
