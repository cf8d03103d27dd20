import { type Matches, type TerminalController, useStore } from '@sandwire/react'
import { type ReactElement, useState } from 'react'
import { IconButton } from '../shell/icon.tsx'
import { terminalTexts } from '../texts/terminals.ts'

/** Searches a terminal's scrollback from the bottom up. */
export function FindBar({
  controller,
  onClose,
}: {
  readonly controller: TerminalController
  readonly onClose: () => void
}): ReactElement {
  const { surface } = controller
  const [text, setText] = useState('')
  const matches = useStore(surface.matches)
  const find = (wanted: string, backwards: boolean): void => {
    if (wanted === '') surface.endFind()
    else surface.find(wanted, backwards)
  }
  const close = (): void => {
    surface.endFind()
    surface.focus()
    onClose()
  }
  return (
    <div className="find-bar" role="search">
      <input
        autoFocus
        aria-label={terminalTexts.find.label}
        placeholder={terminalTexts.find.placeholder}
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          find(event.target.value, true)
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter') find(text, !event.shiftKey)
          if (event.key === 'Escape') {
            event.preventDefault()
            close()
          }
        }}
      />
      <span className="find-words" role="status">
        {formatMatches(text, matches)}
      </span>
      <IconButton icon="up" label={terminalTexts.find.previous} onClick={() => find(text, true)} />
      <IconButton icon="down" label={terminalTexts.find.next} onClick={() => find(text, false)} />
      <IconButton icon="close" label={terminalTexts.find.close} onClick={close} />
    </div>
  )
}

/** Describes the matches. */
export function formatMatches(text: string, { at, count, isCounted }: Matches): string {
  if (text === '') return ''
  if (count === 0) return terminalTexts.find.none
  if (!isCounted) return terminalTexts.find.atLeast(count)
  return at === undefined ? terminalTexts.find.count(count) : terminalTexts.find.position(at, count)
}
