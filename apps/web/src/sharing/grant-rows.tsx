import type { ReactElement } from 'react'
import type { Grant } from '../api/grants.ts'
import { agoOrAhead } from '../shell/time-text.ts'
import type { Loaded } from '../state/workbench.ts'
import { sharingTexts } from '../texts/sharing.ts'

/** What was shared, and to whom. */
export function GrantRows({
  grants,
  onRevoke,
}: {
  readonly grants: Loaded<readonly Grant[]>
  readonly onRevoke: (grant: string) => void
}): ReactElement {
  if (grants.is === 'loading') return <p className="dim">{sharingTexts.loading}</p>
  if (grants.is === 'failed') return <p className="dim">{sharingTexts.retrying(grants.message)}</p>
  if (grants.value.length === 0) return <p className="dim">{sharingTexts.notShared}</p>
  return (
    <section>
      <h3 className="dim">{sharingTexts.sharedWith}</h3>
      <ul className="rows bordered" aria-label={sharingTexts.sharedWith}>
        {grants.value.map(({ grant, name, role, session, state, expiresMs }) => (
          <li key={grant} className="row">
            <span className="row-text">
              {state === 'open' ? sharingTexts.unusedLink : (name ?? sharingTexts.unknownUser)}
              <small>
                {[
                  role === 'viewer' ? sharingTexts.viewOnly : sharingTexts.canType,
                  ...(session === null ? [sharingTexts.wholeSandbox] : []),
                  sharingTexts.expiresAt(agoOrAhead(expiresMs, Date.now())),
                ].join(' · ')}
              </small>
            </span>
            <button type="button" className="danger" onClick={() => onRevoke(grant)}>
              {sharingTexts.revoke}
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
}
