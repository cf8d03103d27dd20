import type { Arrow, TerminalController } from '@sandwire/react'
import { type ReactElement, useState } from 'react'
import { useParts } from '../state/context.ts'
import { terminalTexts } from '../texts/terminals.ts'

type Key = { readonly label: string; readonly name: string } & (
  | { readonly sends: string }
  | { readonly arrow: Arrow }
)

const { names } = terminalTexts.keys

const KEYS: readonly Key[] = [
  { label: 'Esc', name: names.escape, sends: '\u{1b}' },
  { label: 'Tab', name: names.tab, sends: '\t' },
  { label: '←', name: names.left, arrow: 'left' },
  { label: '↑', name: names.up, arrow: 'up' },
  { label: '↓', name: names.down, arrow: 'down' },
  { label: '→', name: names.right, arrow: 'right' },
  { label: '|', name: names.pipe, sends: '|' },
  { label: '/', name: names.slash, sends: '/' },
  { label: '-', name: names.dash, sends: '-' },
  { label: '~', name: names.tilde, sends: '~' },
]

/** Keys that phone keyboards lack. Ctrl applies to the next key, including one of the phone's keyboard. */
export function KeyRow({ controller }: { readonly controller: TerminalController }): ReactElement {
  const { workbench } = useParts()
  const [isControl, setControl] = useState(false)
  const hold = (): void => {
    // First, because a focus report would consume the modifier.
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
      aria-label={terminalTexts.keys.title}
      // Keeps the focus in the terminal, so that the phone's keyboard stays open.
      onPointerDown={(event) => event.preventDefault()}
      onMouseDown={(event) => event.preventDefault()}
    >
      <button type="button" aria-pressed={isControl} onClick={hold}>
        {terminalTexts.keys.control}
      </button>
      {KEYS.map((key) => (
        <button key={key.name} type="button" aria-label={key.name} onClick={() => press(key)}>
          {key.label}
        </button>
      ))}
      <button type="button" onClick={() => void workbench.attempt(terminalTexts.keys.cannotPaste, paste)}>
        {terminalTexts.keys.paste}
      </button>
    </div>
  )
}

// oxlint-disable-next-line no-control-regex -- Keys begin with one.
const ARROW = /^\u{1b}[[O]([A-D])$/u

/** What a key sends with Ctrl held. */
export function withControl(text: string): string {
  const arrow = ARROW.exec(text)?.[1]
  if (arrow !== undefined) return `\u{1b}[1;5${arrow}`
  const code = text.toUpperCase().charCodeAt(0)
  const isKnown = text.length === 1 && code >= 0x3f && code <= 0x5f
  if (text === ' ') return '\0'
  if (text === '?') return '\u{7f}'
  return isKnown ? String.fromCharCode(code & 0x1f) : text
}
