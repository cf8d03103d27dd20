import { type ReactElement, useState } from 'react'
import { changeTmux, type TmuxAction, type TmuxWindow } from '../api/tmux.ts'
import type { View } from '../layout/layout.ts'
import { IconButton } from '../shell/icon.tsx'
import { Confirm } from '../shell/dialog.tsx'
import { useParts } from '../state/context.ts'
import { tmuxTexts } from '../texts/tmux.ts'
import { TmuxGate } from './tmux-gate.tsx'
import { WindowBar } from './window-bar.tsx'
import { WindowPanes } from './window-panes.tsx'
import { useTmux } from './use-tmux.ts'

interface TmuxViewProps {
  readonly viewId: string
  readonly view: Extract<View, { kind: 'tmux' }>
  readonly isFocused: boolean
}

/** The windows of a sandbox's tmux, with the panes of the active one. */
export function TmuxView(props: TmuxViewProps): ReactElement {
  return (
    <TmuxGate sandbox={props.view.sandbox}>
      <OpenTmux {...props} />
    </TmuxGate>
  )
}

function OpenTmux({ viewId, view: { sandbox }, isFocused }: TmuxViewProps): ReactElement {
  const { workbench } = useParts()
  const load = useTmux(sandbox)
  const act = (action: TmuxAction): void =>
    void workbench.attempt(tmuxTexts.cannotChange, () => changeTmux(sandbox, action))
  if (load.kind === 'loading') return <p className="empty">{tmuxTexts.loading}</p>
  if (load.kind === 'failed') return <p className="empty">{`${tmuxTexts.cannotLoad}: ${load.message}`}</p>
  const { tmux } = load
  if (tmux.state === 'missing') return <p className="empty">{tmuxTexts.missing}</p>
  if (tmux.state === 'stopped')
    return (
      <div className="empty">
        <p>{tmuxTexts.stopped}</p>
        <button type="button" className="primary" onClick={() => act({ type: 'new_window' })}>
          {tmuxTexts.start}
        </button>
      </div>
    )
  const active = tmux.windows.find((window) => window.isActive)
  return (
    <div className="tmux-view">
      <div className="tmux-bar">
        <WindowBar windows={tmux.windows} act={act} />
        {active !== undefined && <PaneButtons window={active} act={act} />}
      </div>
      {active !== undefined && (
        <WindowPanes viewId={viewId} sandbox={sandbox} window={active} isFocused={isFocused} act={act} />
      )}
    </div>
  )
}

/** Programs that can be ended without a question. */
const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh', 'fish', 'ash'])

function PaneButtons({
  window,
  act,
}: {
  readonly window: TmuxWindow
  readonly act: (action: TmuxAction) => void
}): ReactElement {
  const [killing, setKilling] = useState<{ readonly pane: string; readonly command: string }>()
  const pane = window.panes.find(({ isActive }) => isActive)
  if (pane === undefined) return <></>
  const kill = (id: string): void => act({ type: 'kill_pane', pane: id })
  return (
    <div className="tmux-actions">
      <IconButton
        icon="zoom"
        label={tmuxTexts.zoom}
        isPressed={window.isZoomed}
        isDisabled={window.panes.length === 1}
        onClick={() => act({ type: 'zoom_pane', pane: pane.id })}
      />
      <IconButton
        icon="close"
        label={tmuxTexts.killPane}
        onClick={() =>
          SHELLS.has(pane.command) ? kill(pane.id) : setKilling({ pane: pane.id, command: pane.command })
        }
      />
      {killing !== undefined && (
        <Confirm
          title={tmuxTexts.killQuestion}
          yes={tmuxTexts.kill}
          isDangerous
          onAnswer={(isYes) => {
            setKilling(undefined)
            if (isYes) kill(killing.pane)
          }}
        >
          <p>{tmuxTexts.killText(killing.command)}</p>
        </Confirm>
      )}
    </div>
  )
}
