import { type ReactElement, useEffect, useState } from 'react'
import type { Banner } from './status-text.ts'
import { terminalTexts } from '../texts/terminals.ts'

/** A cut as short as this is not worth moving what is in a terminal for. */
const SHORT_MS = 300

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
  const [isLater, setLater] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLater(true), afterMs)
    return () => clearTimeout(timer)
  }, [afterMs])
  return isLater
}

/** What is said while there is no connection; when that lasts, in a place of its own, so that it covers nothing. */
export function Waiting({ banner }: { readonly banner: Extract<Banner, { kind: 'waiting' }> }): ReactElement {
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

/** What is said over the end, with what can be done about it. */
export function Ended({
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
          {terminalTexts.newShell}
        </button>
      )}
      <button type="button" onClick={onClose}>
        {terminalTexts.close}
      </button>
    </div>
  )
}
