import { type ReactElement, useState } from 'react'
import { displayTitle } from '../files/display-name.ts'
import type { TmuxAction, TmuxWindow } from '../api/tmux.ts'
import { IconButton } from '../shell/icon.tsx'
import { tmuxTexts } from '../texts/tmux.ts'

/** The windows by name. A double click or F2 renames one. */
export function WindowBar({
  windows,
  act,
}: {
  readonly windows: readonly TmuxWindow[]
  readonly act: (action: TmuxAction) => void
}): ReactElement {
  const [renamed, setRenamed] = useState<string>()
  const rename = (window: string, name: string): void => {
    setRenamed(undefined)
    if (name.trim() !== '') act({ type: 'rename_window', window, name: name.trim() })
  }
  return (
    <div className="tmux-windows">
      <ul aria-label={tmuxTexts.windows}>
        {windows.map(({ id, index, name, isActive }) => (
          <li key={id}>
            {renamed === id ? (
              <input
                aria-label={tmuxTexts.windowName}
                defaultValue={name}
                maxLength={100}
                autoFocus
                onBlur={(event) => rename(id, event.currentTarget.value)}
                onKeyDown={(event) => {
                  if (event.key === 'Enter') rename(id, event.currentTarget.value)
                  if (event.key === 'Escape') setRenamed(undefined)
                }}
              />
            ) : (
              <button
                type="button"
                aria-current={isActive}
                title={tmuxTexts.renameWindow}
                onClick={() => act({ type: 'select_window', window: id })}
                onDoubleClick={() => setRenamed(id)}
                onKeyDown={(event) => {
                  if (event.key === 'F2') setRenamed(id)
                }}
              >
                {`${index}: ${displayTitle(name)}`}
              </button>
            )}
          </li>
        ))}
      </ul>
      <IconButton icon="plus" label={tmuxTexts.newWindow} onClick={() => act({ type: 'new_window' })} />
    </div>
  )
}
