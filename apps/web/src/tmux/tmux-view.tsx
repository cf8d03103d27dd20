import type { ReactElement } from 'react'
import { changeTmux, type TmuxAction } from '../api/tmux.ts'
import type { View } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { tmuxTexts } from '../texts/tmux.ts'
import { PaneButtons } from './pane-buttons.tsx'
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
