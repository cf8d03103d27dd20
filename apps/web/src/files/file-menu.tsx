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
  useEffect(() => {
    element.current?.querySelector('button')?.focus()
    const closeBeside = (event: MouseEvent): void => {
      if (!(event.target instanceof Node) || element.current?.contains(event.target) !== true) onClose()
    }
    document.addEventListener('mousedown', closeBeside)
    return () => document.removeEventListener('mousedown', closeBeside)
  }, [onClose])
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
        if (event.key === 'Escape') onClose()
        if (event.key === 'ArrowDown') step(1)
        if (event.key === 'ArrowUp') step(-1)
      }}
    >
      {items.map(({ label, isDangerous = false, run }) => (
        <button
          key={label}
          type="button"
          role="menuitem"
          className={isDangerous ? 'dangerous' : ''}
          onClick={() => {
            onClose()
            run()
          }}
        >
          {label}
        </button>
      ))}
    </div>
  )
}
