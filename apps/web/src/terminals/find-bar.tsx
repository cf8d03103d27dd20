import type { TerminalController } from '@sandwire/react'
import { type ReactElement, useState } from 'react'
import { IconButton } from '../shell/icon-button.tsx'

/** Looks for a text in what a terminal has shown. */
export function FindBar({
  controller,
  onClose,
}: {
  readonly controller: TerminalController
  readonly onClose: () => void
}): ReactElement {
  const [text, setText] = useState('')
  const [isMissing, setMissing] = useState(false)
  const find = (wanted: string, backwards: boolean): void => {
    setMissing(wanted !== '' && !controller.surface.find(wanted, backwards))
  }
  const close = (): void => {
    controller.surface.endFind()
    controller.surface.focus()
    onClose()
  }
  return (
    <div className="find-bar" role="search">
      <input
        autoFocus
        aria-label="Find in this terminal"
        placeholder="Find"
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
      <span role="status">{isMissing ? 'Not found' : ''}</span>
      <IconButton icon="close" label="Close" onClick={close} />
    </div>
  )
}
