import { type ReactElement, type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from 'react'

/** An entry of the picker. */
interface Pick {
  readonly id: string
  readonly label: ReactNode
  readonly note?: string
  readonly run: () => void
}

/** A text field with a list: type, select with the arrow keys, confirm with Enter. */
export function Picker({
  title,
  placeholder,
  typed,
  picks,
  status,
  onType,
  onClose,
}: {
  readonly title: string
  readonly placeholder: string
  readonly typed: string
  readonly picks: readonly Pick[]
  /** Shown when the list is empty. */
  readonly status: string
  readonly onType: (text: string) => void
  readonly onClose: () => void
}): ReactElement {
  const element = useRef<HTMLDialogElement>(null)
  const listId = useId()
  const [chosen, setChosen] = useState(0)
  const at = Math.min(chosen, Math.max(0, picks.length - 1))
  // Closed before it is removed, so that the browser restores the focus.
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  useEffect(() => {
    document
      .querySelector(`#${CSS.escape(listId)} [aria-selected=true]`)
      ?.scrollIntoView({ block: 'nearest' })
  }, [at, listId])
  const run = (pick: Pick | undefined): void => {
    if (pick === undefined) return
    onClose()
    pick.run()
  }
  const step = (by: number): void => setChosen((at + by + picks.length) % Math.max(1, picks.length))
  return (
    <dialog
      ref={element}
      className="dialog picker"
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose()
      }}
    >
      <input
        autoFocus
        role="combobox"
        aria-label={title}
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={picks[at] === undefined ? undefined : `${listId}-${at}`}
        placeholder={placeholder}
        value={typed}
        spellCheck={false}
        onChange={(event) => {
          setChosen(0)
          onType(event.target.value)
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter') run(picks[at])
          else if (event.key === 'ArrowDown') step(1)
          else if (event.key === 'ArrowUp') step(-1)
          else return
          event.preventDefault()
        }}
      />
      <div id={listId} role="listbox" aria-label={title} className="picker-list">
        {picks.length === 0 && <p className="empty">{status}</p>}
        {picks.map((pick, index) => (
          <div
            key={pick.id}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === at}
            className="picker-line"
            onMouseMove={() => setChosen(index)}
            onClick={() => run(pick)}
          >
            <span className="picker-label">{pick.label}</span>
            {pick.note !== undefined && <span className="picker-note">{pick.note}</span>}
          </div>
        ))}
      </div>
    </dialog>
  )
}
