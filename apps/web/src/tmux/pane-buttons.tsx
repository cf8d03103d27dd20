import { type FormEvent, type ReactElement, useRef, useState } from 'react'
import type { TmuxAction, TmuxPane, TmuxWindow } from '../api/tmux.ts'
import { Confirm, Dialog } from '../shell/dialog.tsx'
import { IconButton } from '../shell/icon.tsx'
import { Menu, type MenuItem } from '../shell/menu.tsx'
import { tmuxTexts } from '../texts/tmux.ts'

/** Programs that can be ended without a question. */
const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh', 'fish', 'ash'])

/** What waits for an answer of the user. */
type Pending =
  | { readonly kind: 'menu'; readonly x: number; readonly y: number }
  | { readonly kind: 'rename' }
  | { readonly kind: 'kill'; readonly action: TmuxAction; readonly running: readonly TmuxPane[] }

/** Actions on the active pane and its window. */
export function PaneButtons({
  window,
  act,
}: {
  readonly window: TmuxWindow
  readonly act: (action: TmuxAction) => void
}): ReactElement {
  const [pending, setPending] = useState<Pending>()
  const element = useRef<HTMLDivElement>(null)
  const { panes } = window
  const pane = panes.find(({ isActive }) => isActive)
  if (pane === undefined) return <></>
  const kill = (action: TmuxAction, ended: readonly TmuxPane[]): void => {
    const running = ended.filter(({ command }) => !SHELLS.has(command))
    if (running.length === 0) act(action)
    else setPending({ kind: 'kill', action, running })
  }
  const next = panes[(panes.indexOf(pane) + 1) % panes.length]
  const items: readonly MenuItem[] = [
    { label: tmuxTexts.renamePane, run: () => setPending({ kind: 'rename' }) },
    ...(next === undefined || next === pane
      ? []
      : [{ label: tmuxTexts.swap, run: () => act({ type: 'swap_panes', pane: pane.id, other: next.id }) }]),
    {
      label: tmuxTexts.killWindow,
      isDangerous: true,
      run: () => kill({ type: 'kill_window', window: window.id }, panes),
    },
  ]
  const openMenu = (): void => {
    const { left = 0, bottom = 0 } = element.current?.getBoundingClientRect() ?? {}
    setPending({ kind: 'menu', x: left, y: bottom })
  }
  const done = (): void => setPending(undefined)
  return (
    <div ref={element} className="tmux-actions">
      <IconButton
        icon="zoom"
        label={tmuxTexts.zoom}
        isPressed={window.isZoomed}
        isDisabled={panes.length === 1}
        onClick={() => act({ type: 'zoom_pane', pane: pane.id })}
      />
      <IconButton icon="more" label={tmuxTexts.more} onClick={openMenu} />
      <IconButton
        icon="close"
        label={tmuxTexts.killPane}
        onClick={() => kill({ type: 'kill_pane', pane: pane.id }, [pane])}
      />
      {pending?.kind === 'menu' && <Menu x={pending.x} y={pending.y} items={items} onClose={done} />}
      {pending?.kind === 'rename' && (
        <RenamePane
          title={pane.title}
          onClose={done}
          onName={(name) => act({ type: 'rename_pane', pane: pane.id, name })}
        />
      )}
      {pending?.kind === 'kill' && (
        <Confirm
          title={tmuxTexts.killQuestion}
          yes={tmuxTexts.kill}
          isDangerous
          onAnswer={(isYes) => {
            done()
            if (isYes) act(pending.action)
          }}
        >
          <p>{tmuxTexts.killText(pending.running.map(({ command }) => command).join(', '))}</p>
        </Confirm>
      )}
    </div>
  )
}

function RenamePane({
  title,
  onName,
  onClose,
}: {
  readonly title: string
  readonly onName: (name: string) => void
  readonly onClose: () => void
}): ReactElement {
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const name = new FormData(event.currentTarget).get('name')
    onClose()
    if (typeof name === 'string' && name.trim() !== '') onName(name.trim())
  }
  return (
    <Dialog title={tmuxTexts.renamePane} onClose={onClose}>
      <form onSubmit={submit}>
        <label>
          {tmuxTexts.paneName}
          <input name="name" defaultValue={title} maxLength={100} autoFocus />
        </label>
        <div className="dialog-actions">
          <button type="submit" className="primary">
            {tmuxTexts.rename}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
