import type { TerminalState } from '@sandwire/react'

/** What is to be said over a terminal that is not simply there; undefined when it is. */
export type Banner =
  | {
      readonly kind: 'waiting'
      readonly text: string
      readonly untilMs?: number
      /** There is nothing yet that it could cover. */
      readonly isFirst: boolean
    }
  | { readonly kind: 'ended'; readonly text: string; readonly isGood: boolean }

/** What a person can do about a refusal, where there is something. */
const ADVICE: Readonly<Record<string, string>> = {
  session_gone: 'It ended before this page came back.',
  sandbox_stopped: 'Start the sandbox to work in it.',
  unauthorized: 'Sign in again.',
  too_many_sessions: 'End a session in this sandbox first.',
}

/** What is not there. Nobody is told whether it ever was, and a server's words about ids say nothing to anybody. */
const MISSING: Readonly<Record<string, string>> = {
  sandbox_not_found: 'The sandbox was destroyed, or is no longer shared with you',
  session_not_found: 'What ran here ended, or is no longer shared with you',
}

/** Nobody takes their own from its owner: there it is the sign-in that ended. */
function withdrawnText(isOwn: boolean): string {
  return isOwn
    ? 'Your sign-in ended, and with it this connection. What runs here goes on.'
    : 'It is no longer shared with you.'
}

function stoppedText(isGone: boolean): string {
  return isGone ? 'The sandbox was destroyed' : 'The sandbox was stopped'
}

/** What a terminal's state means to who looks at it. */
export function bannerOf(
  {
    status,
    isStopping = false,
    stopReason,
  }: Pick<TerminalState, 'status'> & Partial<Pick<TerminalState, 'isStopping' | 'stopReason'>>,
  { isOwn = false, isGone = false }: { readonly isOwn?: boolean; readonly isGone?: boolean } = {},
): Banner | undefined {
  switch (status.is) {
    case 'attached':
      return undefined
    case 'connecting':
      return {
        kind: 'waiting',
        text: status.attempt > 1 ? 'Connecting again…' : 'Connecting…',
        isFirst: true,
      }
    case 'reconnecting':
      return { kind: 'waiting', text: 'The connection is lost', untilMs: status.atMs, isFirst: false }
    case 'detached':
      return { kind: 'ended', text: 'Detached', isGood: true }
    case 'exited': {
      // What a stop ends is not worth the name of a signal.
      if (isStopping)
        return { kind: 'ended', text: stoppedText(isGone || stopReason === 'removed'), isGood: true }
      const { code, signal } = status.exit
      const how = signal === null ? `exited with ${code ?? 'an unknown code'}` : `was ended by ${signal}`
      return { kind: 'ended', text: `The process ${how}`, isGood: code === 0 }
    }
    case 'failed': {
      if (status.error.code === 'revoked') return { kind: 'ended', text: withdrawnText(isOwn), isGood: false }
      const missing = MISSING[status.error.code]
      if (missing !== undefined) return { kind: 'ended', text: missing, isGood: false }
      const advice = ADVICE[status.error.code]
      return {
        kind: 'ended',
        text: advice === undefined ? status.error.message : `${status.error.message}. ${advice}`,
        isGood: false,
      }
    }
  }
}
