import type { TerminalController } from '@sandwire/react'
import { type ReactElement, useState } from 'react'
import { withControl } from './control-key.ts'

const KEYS: readonly { readonly label: string; readonly name: string; readonly sends: string }[] = [
  { label: 'Esc', name: 'Escape', sends: '\u{1b}' },
  { label: 'Tab', name: 'Tab', sends: '\t' },
  { label: '←', name: 'Left', sends: '\u{1b}[D' },
  { label: '↑', name: 'Up', sends: '\u{1b}[A' },
  { label: '↓', name: 'Down', sends: '\u{1b}[B' },
  { label: '→', name: 'Right', sends: '\u{1b}[C' },
  { label: '|', name: 'Pipe', sends: '|' },
  { label: '/', name: 'Slash', sends: '/' },
  { label: '-', name: 'Dash', sends: '-' },
  { label: '~', name: 'Tilde', sends: '~' },
]

/** Keys that the keyboard of a phone does not have. Ctrl holds for the next key, also of the phone's own. */
export function KeyRow({ controller }: { readonly controller: TerminalController }): ReactElement {
  const [isControl, setControl] = useState(false)
  const hold = (): void => {
    const next = !isControl
    setControl(next)
    controller.changeNextInput(
      next
        ? (text) => {
            setControl(false)
            return withControl(text)
          }
        : undefined,
    )
  }
  return (
    <div className="key-row" role="toolbar" aria-label="Keys">
      <button type="button" aria-pressed={isControl} onClick={hold}>
        Ctrl
      </button>
      {KEYS.map(({ label, name, sends }) => (
        <button
          key={name}
          type="button"
          aria-label={name}
          // The keyboard of the phone stays open as long as the terminal has the focus.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => controller.type(sends)}
        >
          {label}
        </button>
      ))}
    </div>
  )
}
