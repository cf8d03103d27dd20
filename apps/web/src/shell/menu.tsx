import { type ReactElement, useEffect, useRef } from 'react'

export interface MenuItem {
  readonly label: string
  readonly isDangerous?: boolean
  readonly run: () => void
}

/** A list of what can be done, where the person asked for it. */
export function Menu({
  x,
  y,
  items,
  onClose,
}: {
  readonly x: number
  readonly y: number
  readonly items: readonly MenuItem[]
  readonly onClose: () => void
}): ReactElement {
  const element = useRef<HTMLDivElement>(null)
  const before = useRef<Element>(null)
  // Once: while it is open, what is behind it may be drawn anew.
  useEffect(() => {
    before.current = document.activeElement
    element.current?.querySelector('button')?.focus()
  }, [])
  useEffect(() => {
    const closeBeside = (event: MouseEvent): void => {
      if (!(event.target instanceof Node) || element.current?.contains(event.target) !== true) onClose()
    }
    document.addEventListener('mousedown', closeBeside)
    return () => document.removeEventListener('mousedown', closeBeside)
  }, [onClose])
  /** Gives the keyboard back to who had it, so that the next key is not for somebody else. */
  const leave = (): void => {
    if (before.current instanceof HTMLElement) before.current.focus()
    onClose()
  }
  const step = (by: 1 | -1): void => {
    const buttons = [...(element.current?.querySelectorAll('button') ?? [])]
    const at = buttons.findIndex((button) => button === document.activeElement)
    buttons[(at + by + buttons.length) % buttons.length]?.focus()
  }
  return (
    <div
      ref={element}
      role="menu"
      className="menu"
      style={{
        left: Math.min(x, window.innerWidth - 200),
        top: Math.min(y, window.innerHeight - items.length * 30 - 16),
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape' || event.key === 'Tab') leave()
        else if (event.key === 'ArrowDown') step(1)
        else if (event.key === 'ArrowUp') step(-1)
        else return
        // The menu is drawn inside the tree and the panel, which have a meaning for these keys as well.
        event.preventDefault()
        event.stopPropagation()
      }}
    >
      {items.map(({ label, isDangerous = false, run }) => (
        <button
          key={label}
          type="button"
          role="menuitem"
          className={isDangerous ? 'dangerous' : ''}
          onClick={() => {
            leave()
            run()
          }}
        >
          {label}
        </button>
      ))}
    </div>
  )
}
