import { type ReactElement, useEffect, useRef } from 'react'

export interface MenuItem {
  readonly label: string
  readonly isDangerous?: boolean
  readonly run: () => void
}

/** A context menu. */
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
  // Only on mount: the rest of the page may re-render meanwhile.
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
  /** Restores the focus, so that the next key does not go elsewhere. */
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
        // The tree and the panel around the menu handle these keys as well.
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
