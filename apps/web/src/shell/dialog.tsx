import { type FormEvent, type ReactElement, type ReactNode, useId, useLayoutEffect, useRef } from 'react'
import { shellTexts } from '../texts/shell.ts'

/** A modal dialog. Escape and a click on the backdrop close it. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ReactNode
}): ReactElement {
  const element = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  // Closed before it is removed, so that the browser restores the focus.
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={element}
      className="dialog"
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose()
      }}
    >
      <div className="dialog-body">
        <h2 id={titleId}>{title}</h2>
        {children}
      </div>
    </dialog>
  )
}

/** A confirmation with two buttons. */
export function Confirm({
  title,
  children,
  yes,
  isDangerous = false,
  onAnswer,
}: {
  readonly title: string
  readonly children: ReactNode
  readonly yes: string
  readonly isDangerous?: boolean
  readonly onAnswer: (isYes: boolean) => void
}): ReactElement {
  const cancel = useRef<HTMLButtonElement>(null)
  // Otherwise a scrollable text would get the initial focus.
  useLayoutEffect(() => cancel.current?.focus(), [])
  return (
    <Dialog title={title} onClose={() => onAnswer(false)}>
      <div className="dialog-text">{children}</div>
      <div className="dialog-actions">
        <button ref={cancel} type="button" onClick={() => onAnswer(false)}>
          {shellTexts.cancel}
        </button>
        <button type="button" className={isDangerous ? 'danger' : 'primary'} onClick={() => onAnswer(true)}>
          {yes}
        </button>
      </div>
    </Dialog>
  )
}

/** A dialog with a form. It shows a problem above its buttons, and does not submit while `busy` is set. */
export function FormDialog({
  title,
  children,
  problem,
  yes,
  busy,
  onSubmit,
  onChange,
  onClose,
}: {
  readonly title: string
  readonly children: ReactNode
  /** Empty: none. */
  readonly problem: string
  readonly yes: string
  /** Text of the button while a request runs. */
  readonly busy?: string | undefined
  readonly onSubmit: () => Promise<void>
  /** Called when a field changes, which makes a problem stale. */
  readonly onChange?: () => void
  readonly onClose: () => void
}): ReactElement {
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (busy === undefined) void onSubmit()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form className="form" onSubmit={submit} onChange={onChange}>
        {children}
        {problem !== '' && (
          <p className="problem" role="alert">
            {problem}
          </p>
        )}
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            {shellTexts.cancel}
          </button>
          <button type="submit" className="primary" disabled={busy !== undefined}>
            {busy ?? yes}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
