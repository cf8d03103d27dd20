import { type ReactElement, useEffect, useState } from 'react'
import type { Banner } from './status-text.ts'

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
export function Waiting({
  banner,
}: {
  readonly banner: Extract<Banner, { kind: 'waiting' }>
}): ReactElement | null {
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
          New shell here
        </button>
      )}
      <button type="button" onClick={onClose}>
        Close
      </button>
    </div>
  )
}
