import { useStore } from '@sandwire/react'
import { type ReactElement, useCallback, useEffect, useState } from 'react'
import { endSession, listSessions, type Session } from '../../api/sessions.ts'
import { displayName } from '../../files/display-name.ts'
import { Confirm } from '../../shell/dialog.tsx'
import { IconButton } from '../../shell/icon.tsx'
import { joinSession } from '../../shell/open-terminal.ts'
import { useParts } from '../../state/context.ts'
import { nameSandbox } from '../../state/sandbox-names.ts'
import { type Loaded, messageOf } from '../../state/workbench.ts'
import { sandboxTexts } from '../../texts/sandboxes.ts'
import { listSessionLines, type SessionLine } from './session-list.ts'

const { sessions: texts } = sandboxTexts
const REFRESH_MS = 5_000

/** Running sessions, polled while the panel is visible. */
function useSessions(): readonly [Loaded<readonly Session[]>, () => Promise<void>] {
  const { workbench } = useParts()
  const isOffline = useStore(workbench.isOffline)
  const [sessions, setSessions] = useState<Loaded<readonly Session[]>>({ kind: 'loading' })
  const refresh = useCallback(async () => {
    try {
      const all = await listSessions()
      for (const session of all) workbench.names.learnShared(session.sandbox, session)
      setSessions({
        kind: 'ready',
        value: all.filter(({ state }) => state === 'running' || state === 'pending'),
      })
    } catch (caught) {
      // Keeps the known sessions, and checks at once whether the server is reachable.
      setSessions((old) => (old.kind === 'ready' ? old : { kind: 'failed', message: messageOf(caught) }))
      void workbench.refreshSandboxes()
    }
  }, [workbench])
  const { views } = useStore(workbench.layout)
  // Refreshes when a session is opened or started here.
  const open = Object.values(views)
    .map((view) => (view.kind === 'terminal' ? view.session : undefined))
    .join()
  const sandboxes = useStore(workbench.sandboxes)
  // Refreshes when a sandbox changes state, as its sessions end with it.
  const states =
    sandboxes.kind === 'ready' ? sandboxes.value.map(({ id, state }) => `${id} ${state}`).join() : ''
  useEffect(() => {
    void refresh()
    const timer = setInterval(() => {
      if (!document.hidden) void refresh()
    }, REFRESH_MS)
    return () => clearInterval(timer)
  }, [refresh, open, isOffline, states])
  return [sessions, refresh]
}

function SessionRow({
  line,
  onEnd,
}: {
  readonly line: SessionLine
  readonly onEnd: () => void
}): ReactElement {
  const { workbench } = useParts()
  const [isAsking, setAsking] = useState(false)
  const { session, name, sandboxName, started, people, spent, isOpen } = line
  const { id, sandbox, cmd, access = 'owner' } = session
  return (
    <li className="row">
      <button
        type="button"
        className="row-main"
        title={displayName(cmd)}
        onClick={() => joinSession(workbench, sandbox, id)}
      >
        <span className="row-text">
          <span className="row-name">
            {name}
            {isOpen && <span className="row-mark">{texts.open}</span>}
          </span>
          <small>{[sandboxName, people, started, spent].filter((part) => part !== '').join(' · ')}</small>
        </span>
      </button>
      {access !== 'viewer' && (
        <IconButton icon="close" label={texts.end(name, sandboxName)} onClick={() => setAsking(true)} />
      )}
      {isAsking && (
        <Confirm
          title={texts.endTitle(name, sandboxName)}
          yes={texts.endButton}
          isDangerous
          onAnswer={(isYes) => {
            setAsking(false)
            if (isYes) onEnd()
          }}
        >
          <p>{texts.endHint}</p>
        </Confirm>
      )}
    </li>
  )
}

/** Running sessions, to join or to end. */
export function SessionRows(): ReactElement | null {
  const { workbench, terminals } = useParts()
  const [sessions, refresh] = useSessions()
  const isOffline = useStore(workbench.isOffline)
  const open = useStore(terminals.sessions.all)
  const names = useStore(workbench.names.all)
  const user = useStore(workbench.user)
  const self = user.kind === 'ready' ? user.value : undefined
  if (sessions.kind === 'loading') return <p className="empty">{sandboxTexts.loading}</p>
  if (sessions.kind === 'failed') return <p className="empty">{sandboxTexts.retrying(sessions.message)}</p>
  if (sessions.value.length === 0) return <p className="empty">{texts.none}</p>
  const end = async (session: string): Promise<void> => {
    await workbench.attempt(texts.cannotEnd, () => endSession(session))
    await refresh()
  }
  const lines = listSessionLines(sessions.value, {
    open,
    self: self?.name ?? '',
    nowMs: Date.now(),
    nameSandbox: (sandbox) => nameSandbox(sandbox, names, self?.guest === true),
  })
  return (
    <ul className={isOffline ? 'rows stale' : 'rows'}>
      {lines.map((line) => (
        <SessionRow key={line.session.id} line={line} onEnd={() => void end(line.session.id)} />
      ))}
    </ul>
  )
}
