import { Terminal, type TerminalController, useStore } from '@sandwire/react'
import { type ReactElement, useEffect } from 'react'
import type { View } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { useIsGone, useMayWorkIn, useOwns } from '../state/use-rights.ts'
import { useShareGone } from '../state/use-share-gone.ts'
import { PeopleBar } from '../sharing/people-bar.tsx'
import { FindBar } from './find-bar.tsx'
import { KeyRow } from './key-row.tsx'
import { shellRequest } from './shell-request.ts'
import { Ended, Waiting } from './terminal-banners.tsx'
import { bannerOf } from './status-text.ts'
import { terminalTexts } from '../texts/terminals.ts'

/** A terminal with what is to be said about it. */
export function TerminalPane({
  viewId,
  view,
  isFocused,
  onClose,
}: {
  readonly viewId: string
  readonly view: Extract<View, { kind: 'terminal' }>
  readonly isFocused: boolean
  readonly onClose: () => void
}): ReactElement {
  const { terminals } = useParts()
  const controller: TerminalController = terminals.of(viewId, view)
  const state = useStore(controller.state)
  const finding = useStore(terminals.finding)
  const isMissing = useIsGone(view.sandbox)
  const isShareGone = useShareGone(view.sandbox, state.status.is === 'exited' && state.isStopping)
  const isGone = isMissing || isShareGone
  const banner = bannerOf(state, { isOwn: useOwns(view.sandbox), isGone })
  const mayWork = useMayWorkIn(view.sandbox)
  const isReadOnly = state.role === 'viewer' && !controller.canBeginToDrive
  useEffect(() => {
    if (isFocused) controller.surface.focus()
  }, [controller, isFocused])
  const restart = (): void => {
    const { session: _, ...place } = view
    controller.restart(shellRequest(place))
    controller.surface.focus()
  }
  return (
    <div className={`terminal-pane ${state.role === 'driver' ? '' : 'follows'}`}>
      <PeopleBar controller={controller} />
      {finding === viewId && (
        <FindBar controller={controller} onClose={() => terminals.openFind(undefined)} />
      )}
      {state.notice !== undefined && banner?.kind !== 'ended' && (
        <div className="banner notice-line">{state.notice}</div>
      )}
      <Terminal controller={controller} showsTrouble={false} className="terminal-surface" />
      {isReadOnly && banner === undefined && <div className="read-only-line">{terminalTexts.viewOnly}</div>}
      {!isReadOnly && banner === undefined && <KeyRow controller={controller} />}
      {banner?.kind === 'waiting' && <Waiting banner={banner} />}
      {banner?.kind === 'ended' && (
        <Ended banner={banner} onRestart={mayWork ? restart : undefined} onClose={onClose} />
      )}
    </div>
  )
}
