import { useStore } from '@sandwire/react'
import { type ReactElement, useCallback, useEffect, useState } from 'react'
import { openSharedConversation } from '../../agents/open-agent.ts'
import { isConversationId } from '../../api/conversations.ts'
import { type HeldGrant, leaveGrant, listHeldGrants } from '../../api/grants.ts'
import { formatRelativeTime } from '../../shell/format-time.ts'
import { IconButton } from '../../shell/icon.tsx'
import { joinSession, openTerminal } from '../../shell/open-terminal.ts'
import { useParts } from '../../state/context.ts'
import { sandboxTexts } from '../../texts/sandboxes.ts'
import { CreateDialog, type CreatedSandbox } from './create-dialog.tsx'
import { hasIsolation } from './new-sandbox.ts'
import { SandboxRow } from './sandbox-row.tsx'
import { SessionRows } from './session-rows.tsx'

/** Sandboxes, sessions and received shares. */
export function SandboxesPanel(): ReactElement {
  const { workbench, terminals } = useParts()
  const sandboxes = useStore(workbench.sandboxes)
  const user = useStore(workbench.user)
  const isOffline = useStore(workbench.isOffline)
  const [isCreating, setCreating] = useState(false)
  const isGuest = user.kind === 'ready' && user.value?.guest === true
  const onCreated = ({ id, firstCommand }: CreatedSandbox): void => {
    setCreating(false)
    workbench.choose(id)
    if (firstCommand !== undefined) terminals.startFirst(firstCommand)
    openTerminal(workbench, id)
    void workbench.refreshSandboxes()
  }
  return (
    <>
      <header className="panel-head">
        <h2>{sandboxTexts.title}</h2>
        {!isGuest && (
          <IconButton icon="plus" label={sandboxTexts.create.title} onClick={() => setCreating(true)} />
        )}
        <IconButton
          icon="refresh"
          label={sandboxTexts.refresh}
          onClick={() => void workbench.refreshSandboxes()}
        />
      </header>
      {isOffline && (
        <p className="problem" role="status">
          {sandboxTexts.unreachable}
          {sandboxes.kind === 'ready' && sandboxTexts.stale}
        </p>
      )}
      {sandboxes.kind === 'loading' && <p className="empty">{sandboxTexts.loading}</p>}
      {sandboxes.kind === 'failed' && !isOffline && (
        <p className="empty">{sandboxTexts.retrying(sandboxes.message)}</p>
      )}
      {sandboxes.kind === 'ready' && sandboxes.value.length === 0 && (
        <p className="empty">{isGuest ? sandboxTexts.noneForGuest : sandboxTexts.none}</p>
      )}
      {sandboxes.kind === 'ready' && (
        <ul className={isOffline ? 'rows stale' : 'rows'}>
          {sandboxes.value.map((sandbox) => (
            <SandboxRow key={sandbox.id} sandbox={sandbox} />
          ))}
        </ul>
      )}
      <section aria-label={sandboxTexts.sessions.title}>
        <header className="panel-head">
          <h2>{sandboxTexts.sessions.title}</h2>
        </header>
        <SessionRows />
      </section>
      <SharedRows />
      {isCreating && (
        <CreateDialog
          isIsolated={hasIsolation(sandboxes.kind === 'ready' ? sandboxes.value : [])}
          onCreated={onCreated}
          onClose={() => setCreating(false)}
        />
      )}
    </>
  )
}

const { received: texts } = sandboxTexts

function nameOf({
  session,
  sandboxName,
}: {
  readonly session: string | null
  readonly sandboxName: string | undefined
}): string {
  if (session === null) return sandboxName ?? texts.sandbox
  return isConversationId(session) ? texts.conversation : texts.session
}

/** Sessions that others share with the user. Whole sandboxes are in the list of sandboxes. */
function SharedRows(): ReactElement | null {
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
                else if (openSharedConversation(workbench, { sandbox, session })) return
                else joinSession(workbench, sandbox, session)
              }}
            >
              <span className="row-text">
                <span className="row-name">{nameOf({ session, sandboxName })}</span>
                <small>
                  {texts.from(
                    owner,
                    role === 'viewer' ? sandboxTexts.viewOnly : sandboxTexts.canType,
                    formatRelativeTime(expiresMs, Date.now()),
                  )}
                </small>
              </span>
            </button>
            <IconButton
              icon="close"
              label={texts.leave(nameOf({ session, sandboxName }), owner)}
              onClick={() => void leave(grant)}
            />
          </li>
        ))}
      </ul>
    </section>
  )
}
