import type { ReactElement } from 'react'
import type { Grant } from '../api/grants.ts'
import { agoOrAhead } from '../shell/time-text.ts'
import type { Loaded } from '../state/workbench.ts'

/** What was shared, and to whom. */
export function GrantRows({
  grants,
  onRevoke,
}: {
  readonly grants: Loaded<readonly Grant[]>
  readonly onRevoke: (grant: string) => void
}): ReactElement {
  if (grants.is === 'loading') return <p className="dim">Loading what is shared…</p>
  if (grants.is === 'failed') return <p className="dim">{grants.message}. It is tried again.</p>
  if (grants.value.length === 0) return <p className="dim">Shared with nobody yet.</p>
  return (
    <section>
      <h3 className="dim">Shared with</h3>
      <ul className="rows bordered" aria-label="Shared with">
        {grants.value.map(({ grant, name, role, session, state, expiresMs }) => (
          <li key={grant} className="row">
            <span className="row-text">
              {state === 'open' ? 'A link nobody used yet' : (name ?? 'Somebody')}
              <small>
                {role === 'viewer' ? 'watches' : 'types'}
                {session === null ? ' in the whole sandbox' : ''}, ends {agoOrAhead(expiresMs, Date.now())}
              </small>
            </span>
            <button type="button" className="danger" onClick={() => onRevoke(grant)}>
              Withdraw
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
}
