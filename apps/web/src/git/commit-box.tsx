import { type FormEvent, type ReactElement, useState } from 'react'

/** A message, and the button that makes a commit of what is staged. */
export function CommitBox({
  canCommit,
  onCommit,
}: {
  readonly canCommit: boolean
  /** Answers whether it was made. */
  readonly onCommit: (message: string) => Promise<boolean>
}): ReactElement {
  const [message, setMessage] = useState('')
  const [isBusy, setBusy] = useState(false)
  const submit = async (): Promise<void> => {
    setBusy(true)
    if (await onCommit(message)) setMessage('')
    setBusy(false)
  }
  const isReady = canCommit && message.trim() !== '' && !isBusy
  return (
    <form
      className="commit-box"
      onSubmit={(event: FormEvent) => {
        event.preventDefault()
        if (isReady) void submit()
      }}
    >
      <textarea
        aria-label="Commit message"
        placeholder="Message"
        rows={3}
        value={message}
        onChange={(event) => setMessage(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && isReady) void submit()
        }}
      />
      <button type="submit" className="primary" disabled={!isReady}>
        {isBusy ? 'Committing…' : 'Commit what is staged'}
      </button>
    </form>
  )
}
