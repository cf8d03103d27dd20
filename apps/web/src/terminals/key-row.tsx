import type { Arrow, TerminalController } from '@sandwire/react'
import { type ReactElement, useState } from 'react'
import { useParts } from '../state/context.ts'
import { withControl } from './control-key.ts'

type Key = { readonly label: string; readonly name: string } & (
  | { readonly sends: string }
  | { readonly arrow: Arrow }
)

const KEYS: readonly Key[] = [
  { label: 'Esc', name: 'Esc', sends: '\u{1b}' },
  { label: 'Tab', name: 'Tab', sends: '\t' },
  { label: '←', name: 'Left', arrow: 'left' },
  { label: '↑', name: 'Up', arrow: 'up' },
  { label: '↓', name: 'Down', arrow: 'down' },
  { label: '→', name: 'Right', arrow: 'right' },
  { label: '|', name: 'Pipe', sends: '|' },
  { label: '/', name: 'Slash', sends: '/' },
  { label: '-', name: 'Dash', sends: '-' },
  { label: '~', name: 'Tilde', sends: '~' },
]

/** Keys that the keyboard of a phone does not have. Ctrl holds for the next key, also of the phone's own. */
export function KeyRow({ controller }: { readonly controller: TerminalController }): ReactElement {
  const { workbench } = useParts()
  const [isControl, setControl] = useState(false)
  const hold = (): void => {
    // First, since a program may be told of it, in which the key would be lost.
    controller.surface.focus()
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
  const press = (key: Key): void =>
    controller.type('arrow' in key ? controller.surface.arrowText(key.arrow) : key.sends)
  const paste = async (): Promise<void> => controller.paste(await navigator.clipboard.readText())
  return (
    <div
      className="key-row"
      role="toolbar"
      aria-label="Keys"
      // The keyboard of the phone stays open as long as the terminal has the focus.
      onPointerDown={(event) => event.preventDefault()}
      onMouseDown={(event) => event.preventDefault()}
    >
      <button type="button" aria-pressed={isControl} onClick={hold}>
        Ctrl
      </button>
      {KEYS.map((key) => (
        <button key={key.name} type="button" aria-label={key.name} onClick={() => press(key)}>
          {key.label}
        </button>
      ))}
      <button type="button" onClick={() => void workbench.attempt('Cannot paste', paste)}>
        Paste
      </button>
    </div>
  )
}
