import { Terminal, type TerminalController, useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import type { View } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { useMayWorkIn, useOwns } from '../state/use-rights.ts'
import { PeopleBar } from '../sharing/people-bar.tsx'
import { FindBar } from './find-bar.tsx'
import { KeyRow } from './key-row.tsx'
import { type Banner, bannerOf } from './status-text.ts'

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

function Waiting({ banner }: { readonly banner: Extract<Banner, { kind: 'waiting' }> }): ReactElement {
  const seconds = useCountdown(banner.untilMs)
  const when = seconds === undefined ? '' : seconds === 0 ? ', trying…' : `, trying again in ${seconds} s`
  return (
    <div className="banner waiting" role="status">
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
      {banner?.kind === 'waiting' && <Waiting banner={banner} />}
      <PeopleBar controller={controller} />
      {isReadOnly && <div className="badge-read-only">Watching only</div>}
      {finding === viewId && (
        <FindBar controller={controller} onClose={() => terminals.openFind(undefined)} />
      )}
      {state.notice !== undefined && <div className="banner notice-line">{state.notice}</div>}
      <Terminal controller={controller} url="" showsTrouble={false} className="terminal-surface" />
      {!isReadOnly && banner === undefined && <KeyRow controller={controller} />}
      {banner?.kind === 'ended' && (
        <Ended banner={banner} onRestart={mayWork ? restart : undefined} onClose={onClose} />
      )}
    </div>
  )
}
