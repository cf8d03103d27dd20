import { type KeyboardEvent, type ReactElement, useState } from 'react'
import { sendMessage } from '../api/runs.ts'
import { formatFailure } from '../state/workbench.ts'
import { agentTexts } from '../texts/agents.ts'

const { composer: texts } = agentTexts

/** A message that has not reached the server. */
interface Unsent {
  readonly id: string
  readonly text: string
  readonly problem?: string
}

/** Takes messages to the agent. What could not be sent stays, to be sent again or edited. */
export function Composer({
  run,
  isIdle,
  isEnded,
  onFollowUp,
}: {
  readonly run: string
  /** The agent's turn has ended. */
  readonly isIdle: boolean
  readonly isEnded: boolean
  /** Begins a further run. */
  readonly onFollowUp: () => void
}): ReactElement {
  const [text, setText] = useState('')
  const [unsent, setUnsent] = useState<readonly Unsent[]>([])
  const drop = (id: string): void => setUnsent((now) => now.filter((message) => message.id !== id))
  const send = async (message: Unsent): Promise<void> => {
    const { id } = message
    setUnsent((now) => [...now.filter((other) => other.id !== id), { id, text: message.text }])
    try {
      await sendMessage(run, id, message.text)
      drop(id)
    } catch (caught) {
      const problem = formatFailure(texts.failed, caught)
      setUnsent((now) => now.map((other) => (other.id === id ? { ...other, problem } : other)))
    }
  }
  const submit = (): void => {
    if (text.trim() === '') return
    setText('')
    void send({ id: crypto.randomUUID(), text: text.trim() })
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    submit()
  }
  return (
    <div className="composer">
      {unsent.map((message) => (
        <div key={message.id} className="own-message unsent">
          <p>{message.text}</p>
          {message.problem === undefined ? (
            <small className="dim">{texts.sending}</small>
          ) : (
            <p role="alert">
              <small className="note error">{message.problem}</small>{' '}
              <button type="button" onClick={() => void send(message)}>
                {texts.retry}
              </button>{' '}
              <button
                type="button"
                onClick={() => {
                  setText(message.text)
                  drop(message.id)
                }}
              >
                {texts.edit}
              </button>
            </p>
          )}
        </div>
      ))}
      {isEnded ? (
        <p className="composer-ended">
          <span className="dim">{texts.ended}</span>{' '}
          <button type="button" onClick={onFollowUp}>
            {texts.followUp}
          </button>
        </p>
      ) : (
        <div className="composer-row">
          <textarea
            rows={2}
            value={text}
            aria-label={texts.label}
            placeholder={isIdle ? texts.idle : texts.working}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={onKeyDown}
          />
          <button type="button" className="primary" disabled={text.trim() === ''} onClick={submit}>
            {texts.send}
          </button>
        </div>
      )}
    </div>
  )
}
