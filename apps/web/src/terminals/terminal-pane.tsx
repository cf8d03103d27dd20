import { Terminal, type TerminalController, useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import type { View } from '../layout/layout.ts'
import { ParticipantBar } from '../sharing/participant-bar.tsx'
import { useParts } from '../state/context.ts'
import { useCanWorkIn, useIsGone, useIsOwner, useShareGone } from '../state/rights.ts'
import { terminalTexts } from '../texts/terminals.ts'
import { FindBar } from './find-bar.tsx'
import { KeyRow } from './key-row.tsx'
import { type Banner, bannerOf } from './terminal-status.ts'
import { shellRequest } from './terminals.ts'

/** A terminal with its bars and banners. */
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
  const isShareGone = useShareGone(view.sandbox, state.status.kind === 'exited' && state.isStopping)
  const isGone = isMissing || isShareGone
  const banner = bannerOf(state, { isOwn: useIsOwner(view.sandbox), isGone })
  const mayWork = useCanWorkIn(view.sandbox)
  const isReadOnly = state.role === 'viewer' && !controller.canTakeControlByTyping
  useEffect(() => {
    if (isFocused) controller.surface.focus()
  }, [controller, isFocused])
  const restart = (): void => {
    const { session: _, ...rest } = view
    controller.restart(shellRequest(rest))
    controller.surface.focus()
  }
  return (
    <div className={`terminal-pane ${state.role === 'driver' ? '' : 'follows'}`}>
      <ParticipantBar controller={controller} />
      {finding === viewId && (
        <FindBar controller={controller} onClose={() => terminals.openFind(undefined)} />
      )}
      {state.notice !== undefined && banner?.kind !== 'ended' && (
        <div className="banner notice-line">{state.notice}</div>
      )}
      <Terminal controller={controller} showsProblem={false} className="terminal-surface" />
      {isReadOnly && banner === undefined && <div className="read-only-line">{terminalTexts.viewOnly}</div>}
      {!isReadOnly && banner === undefined && <KeyRow controller={controller} />}
      {banner?.kind === 'waiting' && <Waiting banner={banner} />}
      {banner?.kind === 'ended' && (
        <Ended banner={banner} onRestart={mayWork ? restart : undefined} onClose={onClose} />
      )}
    </div>
  )
}

/** Shorter interruptions do not resize the terminal for the banner. */
const SHORT_MS = 300

/** Counts down the seconds until a `performance.now()` timestamp. */
function useCountdown(untilMs: number | undefined): number | undefined {
  const [nowMs, setNowMs] = useState(() => performance.now())
  useEffect(() => {
    if (untilMs === undefined) return undefined
    const timer = setInterval(() => setNowMs(performance.now()), 250)
    return () => clearInterval(timer)
  }, [untilMs])
  return untilMs === undefined ? undefined : Math.max(0, Math.ceil((untilMs - nowMs) / 1000))
}

/** Becomes true after a delay. */
function useLater(afterMs: number): boolean {
  const [isLater, setLater] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLater(true), afterMs)
    return () => clearTimeout(timer)
  }, [afterMs])
  return isLater
}

/** The connection banner. If the interruption lasts, it takes space of its own instead of covering the terminal. */
function Waiting({ banner }: { readonly banner: Extract<Banner, { kind: 'waiting' }> }): ReactElement {
  const isLong = useLater(SHORT_MS)
  const isOver = banner.isFirst || !isLong
  const seconds = useCountdown(banner.untilMs)
  const when =
    seconds === undefined ? '' : seconds === 0 ? terminalTexts.retryNow : terminalTexts.retryIn(seconds)
  return (
    <div className={`banner waiting ${isOver ? 'over' : ''}`} role="status">
      {banner.text}
      {when}
    </div>
  )
}

/** The banner of an ended session, with what to do next. */
function Ended({
  banner,
  onRestart,
  onClose,
}: {
  readonly banner: Extract<Banner, { kind: 'ended' }>
  /** Absent when the user cannot start a shell there. */
  readonly onRestart: (() => void) | undefined
  readonly onClose: () => void
}): ReactElement {
  return (
    <div className={`banner ended ${banner.isGood ? 'good' : 'bad'}`} role="status">
      <span>{banner.text}</span>
      {onRestart !== undefined && (
        <button type="button" onClick={onRestart}>
          {terminalTexts.newShell}
        </button>
      )}
      <button type="button" onClick={onClose}>
        {terminalTexts.close}
      </button>
    </div>
  )
}
