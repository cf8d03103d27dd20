import { useStore } from '@sandwire/react'
import { type ReactElement, useState } from 'react'
import { destroySandbox, type Sandbox, startSandbox, stopSandbox } from '../../api/sandboxes.ts'
import { displayName } from '../../files/display-name.ts'
import { Confirm } from '../../shell/dialog.tsx'
import { formatAge } from '../../shell/format-time.ts'
import { IconButton } from '../../shell/icon.tsx'
import { openTerminal } from '../../shell/open-terminal.ts'
import { useParts } from '../../state/context.ts'
import { sandboxTexts } from '../../texts/sandboxes.ts'

/** The owner, and what the user may do in another account's sandbox. */
function ownerText(access: Sandbox['access'], owner: string = sandboxTexts.unknownOwner): string {
  if (access === 'owner' || access === undefined) return sandboxTexts.yours
  return sandboxTexts.sharedBy(owner, access === 'viewer' ? sandboxTexts.viewOnly : sandboxTexts.canType)
}

type Question = 'stop' | 'destroy' | undefined

/** A sandbox with its state and actions. */
export function SandboxRow({ sandbox }: { readonly sandbox: Sandbox }): ReactElement {
  const { workbench } = useParts()
  const current = useStore(workbench.current)
  const isOffline = useStore(workbench.isOffline)
  const [question, setQuestion] = useState<Question>()
  const [doing, setDoing] = useState('')
  const { id, name, state, reason, ephemeral, createdMs, access = 'owner', owner } = sandbox
  const act = async (activity: string, failure: string, run: () => Promise<unknown>): Promise<void> => {
    setDoing(activity)
    await workbench.attempt(failure, run)
    await workbench.refreshSandboxes()
    setDoing('')
  }
  const isOwner = access === 'owner'
  const canRun = access !== 'viewer' && state !== 'destroying'
  const stateText = sandboxTexts.states[state]
  const note = doing === '' ? (isOffline ? sandboxTexts.wasState(stateText) : stateText) : doing
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
          <span className={`dot ${isOffline ? '' : state}`} aria-hidden="true" />
          <span className="row-text">
            <span className="row-name">{name}</span>
            <small>
              {note} · {ownerText(access, owner)} · {sandboxTexts.age(formatAge(createdMs, Date.now()))}
              {ephemeral ? ` · ${sandboxTexts.ephemeral}` : ''}
            </small>
          </span>
        </button>
        {canRun && state !== 'running' && (
          <IconButton
            icon="play"
            label={sandboxTexts.start(name)}
            onClick={() =>
              void act(sandboxTexts.states.creating, sandboxTexts.cannotStart(name), () => startSandbox(id))
            }
          />
        )}
        {canRun && (
          <IconButton
            icon="terminal"
            label={sandboxTexts.newTerminal(name)}
            onClick={() => openTerminal(workbench, id)}
          />
        )}
        {isOwner && state === 'running' && (
          <IconButton icon="stop" label={sandboxTexts.stop(name)} onClick={() => setQuestion('stop')} />
        )}
        {isOwner && (
          <IconButton
            icon="trash"
            label={sandboxTexts.destroy(name)}
            onClick={() => setQuestion('destroy')}
          />
        )}
      </div>
      {state === 'failed' && reason !== null && (
        <p className="problem">{sandboxTexts.failed(reason, name)}</p>
      )}
      <SandboxQuestion
        sandbox={sandbox}
        question={question}
        onAnswer={(isYes) => {
          setQuestion(undefined)
          if (isYes && question === 'stop')
            void act(sandboxTexts.states.stopping, sandboxTexts.cannotStop(name), () =>
              stopSandbox(id, ephemeral),
            )
          if (isYes && question === 'destroy')
            void act(sandboxTexts.states.destroying, sandboxTexts.cannotDestroy(name), () =>
              destroySandbox(id),
            )
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
        <Confirm
          title={sandboxTexts.stopDialog.title(name)}
          yes={sandboxTexts.stopDialog.stop}
          isDangerous={ephemeral}
          onAnswer={onAnswer}
        >
          <p>{ephemeral ? sandboxTexts.stopDialog.filesLost : sandboxTexts.stopDialog.filesKept}</p>
          {ephemeral && <UnsavedNote sandbox={id} />}
        </Confirm>
      )
    case 'destroy':
      return (
        <Confirm
          title={sandboxTexts.destroyDialog.title(name)}
          yes={sandboxTexts.destroyDialog.destroy}
          isDangerous
          onAnswer={onAnswer}
        >
          <p>{sandboxTexts.destroyDialog.lost}</p>
          <UnsavedNote sandbox={id} />
        </Confirm>
      )
  }
}

/** Warns about unsaved files before a sandbox is stopped or destroyed. */
function UnsavedNote({ sandbox }: { readonly sandbox: string }): ReactElement | null {
  const { dirty } = useParts()
  const unsaved = [...useStore(dirty.views).values()].filter((one) => one.sandbox === sandbox)
  if (unsaved.length === 0) return null
  return (
    <p className="problem">{sandboxTexts.unsaved(unsaved.map(({ path }) => displayName(path)).join(', '))}</p>
  )
}
