import { useStore } from '@sandwire/react'
import { type ReactElement, useState } from 'react'
import { destroySandbox, type Sandbox, startSandbox, stopSandbox } from '../../api/sandboxes.ts'
import { Confirm } from '../../shell/dialog.tsx'
import { IconButton } from '../../shell/icon-button.tsx'
import { openTerminal } from '../../shell/open-terminal.ts'
import { ageText } from '../../shell/time-text.ts'
import { useParts } from '../../state/context.ts'
import { UnsavedNote } from './unsaved-note.tsx'

/** What a state means to somebody who waits for it. */
const STATES: Readonly<Record<Sandbox['state'], string>> = {
  creating: 'starting…',
  running: 'running',
  stopping: 'stopping…',
  stopped: 'stopped',
  failed: 'failed',
}

/** Whose it is, and what the person does there when it is another's. */
function ownerText(access: Sandbox['access'], owner = 'Somebody'): string {
  if (access === 'owner' || access === undefined) return 'yours'
  return `of ${owner}, you ${access === 'viewer' ? 'watch' : 'work'}`
}

type Question = 'stop' | 'destroy' | undefined

/** One sandbox: how it is, and what its person may do with it. */
export function SandboxRow({ sandbox }: { readonly sandbox: Sandbox }): ReactElement {
  const { workbench } = useParts()
  const current = useStore(workbench.current)
  const isAway = useStore(workbench.isAway)
  const [question, setQuestion] = useState<Question>()
  const [doing, setDoing] = useState('')
  const { id, name, state, reason, ephemeral, createdMs, access = 'owner', owner } = sandbox
  const act = async (what: string, run: () => Promise<unknown>): Promise<void> => {
    setDoing(what)
    await workbench.attempt(`Cannot do this to ${name}`, run)
    await workbench.refreshSandboxes()
    setDoing('')
  }
  const isOwner = access === 'owner'
  const note = doing === '' ? `${isAway ? 'was ' : ''}${STATES[state]}` : doing
  return (
    <li className={`sandbox ${current === id ? 'current' : ''}`}>
      <div className="row">
        <button
          type="button"
          className="row-main"
          aria-current={current === id}
          onClick={() => workbench.choose(id)}
          onDoubleClick={() => openTerminal(workbench, id)}
        >
          <span className={`dot ${isAway ? '' : state}`} aria-hidden="true" />
          <span className="row-text">
            <span className="row-name">{name}</span>
            <small>
              {note} · {ownerText(access, owner)} · {ageText(createdMs, Date.now())} old
              {ephemeral ? ' · ephemeral' : ''}
            </small>
          </span>
        </button>
        {access !== 'viewer' && state !== 'running' && (
          <IconButton
            icon="play"
            label={`Start ${name}`}
            onClick={() => void act('starting…', () => startSandbox(id))}
          />
        )}
        {access !== 'viewer' && (
          <IconButton
            icon="terminal"
            label={`New terminal in ${name}`}
            onClick={() => openTerminal(workbench, id)}
          />
        )}
        {isOwner && state === 'running' && (
          <IconButton icon="stop" label={`Stop ${name}`} onClick={() => setQuestion('stop')} />
        )}
        {isOwner && (
          <IconButton icon="trash" label={`Destroy ${name}`} onClick={() => setQuestion('destroy')} />
        )}
      </div>
      {state === 'failed' && reason !== null && (
        <p className="trouble">
          It failed: {reason}. Start it again, or look at its log with sbx-stdio logs {name}.
        </p>
      )}
      <SandboxQuestion
        sandbox={sandbox}
        question={question}
        onAnswer={(isYes) => {
          setQuestion(undefined)
          if (isYes && question === 'stop') void act('stopping…', () => stopSandbox(id, ephemeral))
          if (isYes && question === 'destroy') void act('destroying…', () => destroySandbox(id))
        }}
      />
    </li>
  )
}

function SandboxQuestion({
  sandbox: { id, name, ephemeral },
  question,
  onAnswer,
}: {
  readonly sandbox: Sandbox
  readonly question: Question
  readonly onAnswer: (isYes: boolean) => void
}): ReactElement | null {
  switch (question) {
    case undefined:
      return null
    case 'stop':
      return (
        <Confirm title={`Stop ${name}?`} yes="Stop" isDangerous={ephemeral} onAnswer={onAnswer}>
          <p>
            Everything that runs in it ends.{' '}
            {ephemeral ? 'Its files are lost: they do not outlive a stop here.' : 'Its files stay.'}
          </p>
          {ephemeral && <UnsavedNote sandbox={id} />}
        </Confirm>
      )
    case 'destroy':
      return (
        <Confirm title={`Destroy ${name}?`} yes="Destroy it" isDangerous onAnswer={onAnswer}>
          <p>Its files, its sessions and what was shared of it are gone for good.</p>
          <UnsavedNote sandbox={id} />
        </Confirm>
      )
  }
}
