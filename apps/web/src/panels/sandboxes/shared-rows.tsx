import { type ReactElement, useCallback, useEffect, useState } from 'react'
import { type HeldGrant, leaveGrant, listHeldGrants } from '../../api/grants.ts'
import { IconButton } from '../../shell/icon-button.tsx'
import { joinSession } from '../../shell/open-terminal.ts'
import { agoOrAhead } from '../../shell/time-text.ts'
import { useParts } from '../../state/context.ts'
import { sandboxTexts } from '../../texts/sandboxes.ts'

const { received: texts } = sandboxTexts

/** What others share with this person, one session each. Whole sandboxes are in the list of sandboxes. */
export function SharedRows(): ReactElement | null {
  const { workbench } = useParts()
  const [grants, setGrants] = useState<readonly HeldGrant[]>([])
  const refresh = useCallback(async () => {
    const held = await workbench.attempt(texts.cannotList, listHeldGrants)
    if (held === undefined) return
    for (const grant of held) workbench.names.learnShared(grant.sandbox, grant)
    setGrants(held)
  }, [workbench])
  useEffect(() => void refresh(), [refresh])
  if (grants.length === 0) return null
  const leave = async (grant: string): Promise<void> => {
    await workbench.attempt(texts.cannotLeave, () => leaveGrant(grant))
    await refresh()
  }
  return (
    <section aria-label={texts.title}>
      <header className="panel-head">
        <h2>{texts.title}</h2>
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
                  {session === null ? (sandboxName ?? texts.sandbox) : texts.session}
                </span>
                <small>
                  {texts.from(
                    owner,
                    role === 'viewer' ? sandboxTexts.viewOnly : sandboxTexts.canType,
                    agoOrAhead(expiresMs, Date.now()),
                  )}
                </small>
              </span>
            </button>
            <IconButton
              icon="close"
              label={texts.leave(session === null ? (sandboxName ?? texts.sandbox) : texts.session, owner)}
              onClick={() => void leave(grant)}
            />
          </li>
        ))}
      </ul>
    </section>
  )
}
