import { Terminal, type TerminalController, useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import type { View } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { useMayWorkIn, useOwns } from '../state/use-rights.ts'
import { PeopleBar } from '../sharing/people-bar.tsx'
import { FindBar } from './find-bar.tsx'
import { KeyRow } from './key-row.tsx'
import { type Banner, bannerOf } from './status-text.ts'

/** A cut as short as this is not worth moving a terminal for. */
const UNNOTICED_MS = 300

/** Seconds until a moment of `performance.now()`, counted down. */
function useCountdown(untilMs: number | undefined): number | undefined {
  const [nowMs, setNowMs] = useState(() => performance.now())
  useEffect(() => {
    if (untilMs === undefined) return undefined
    const timer = setInterval(() => setNowMs(performance.now()), 250)
    return () => clearInterval(timer)
  }, [untilMs])
  return untilMs === undefined ? undefined : Math.max(0, Math.ceil((untilMs - nowMs) / 1000))
}

/** False until a while has passed. */
function useLater(afterMs: number): boolean {
  const [isLater, setLater] = useState(afterMs === 0)
  useEffect(() => {
    const timer = setTimeout(() => setLater(true), afterMs)
    return () => clearTimeout(timer)
  }, [afterMs])
  return isLater
}

/** What is said while there is no connection. It takes room from the terminal, so a cut that nobody notices is not spoken of. */
function Waiting({ banner }: { readonly banner: Extract<Banner, { kind: 'waiting' }> }): ReactElement | null {
  const isWorthIt = useLater(banner.isFirst ? 0 : UNNOTICED_MS)
  const seconds = useCountdown(banner.untilMs)
  const when = seconds === undefined ? '' : seconds === 0 ? ', trying…' : `, trying again in ${seconds} s`
  if (!isWorthIt) return null
  return (
    <div className={`banner waiting ${banner.isFirst ? 'first' : ''}`} role="status">
      {banner.text}
      {when}
    </div>
  )
}

function Ended({
  banner,
  onRestart,
  onClose,
}: {
  readonly banner: Extract<Banner, { kind: 'ended' }>
  /** Absent: this person may start nothing there. */
  readonly onRestart: (() => void) | undefined
  readonly onClose: () => void
}): ReactElement {
  return (
    <div className={`banner ended ${banner.isGood ? 'good' : 'bad'}`} role="status">
      <span>{banner.text}</span>
      {onRestart !== undefined && (
        <button type="button" onClick={onRestart}>
          New shell here
        </button>
      )}
      <button type="button" onClick={onClose}>
        Close
      </button>
    </div>
  )
}

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
  const banner = bannerOf(state, { isOwn: useOwns(view.sandbox) })
  const mayWork = useMayWorkIn(view.sandbox)
  const isReadOnly = state.role === 'viewer'
  useEffect(() => {
    if (isFocused) controller.surface.focus()
  }, [controller, isFocused])
  const { sandbox, cwd } = view
  const restart = (): void => {
    controller.restart({ sandbox, ...(cwd === undefined ? {} : { cwd }) })
    controller.surface.focus()
  }
  return (
    <div className={`terminal-pane ${state.role === 'driver' ? '' : 'follows'}`}>
      <PeopleBar controller={controller} />
      {isReadOnly && banner === undefined && <div className="badge-read-only">Watching only</div>}
      {finding === viewId && (
        <FindBar controller={controller} onClose={() => terminals.openFind(undefined)} />
      )}
      {state.notice !== undefined && <div className="banner notice-line">{state.notice}</div>}
      <Terminal controller={controller} url="" showsTrouble={false} className="terminal-surface" />
      {!isReadOnly && banner === undefined && <KeyRow controller={controller} />}
      {banner?.kind === 'waiting' && <Waiting banner={banner} />}
      {banner?.kind === 'ended' && (
        <Ended banner={banner} onRestart={mayWork ? restart : undefined} onClose={onClose} />
      )}
    </div>
  )
}
