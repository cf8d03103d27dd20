import type { TerminalState } from '@sandwire/react'
import { terminalTexts } from '../texts/terminals.ts'

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
const ADVICE: Readonly<Record<string, string>> = terminalTexts.advice

/** What is not there. Nobody is told whether it ever was, and a server's words about ids say nothing to anybody. */
const MISSING: Readonly<Record<string, string>> = terminalTexts.missing

/** Nobody takes their own from its owner: there it is the sign-in that ended. */
function revokedText(isOwn: boolean): string {
  return isOwn ? terminalTexts.signedOut : terminalTexts.accessRemoved
}

function stoppedText(isGone: boolean): string {
  return isGone ? terminalTexts.sandboxDestroyed : terminalTexts.sandboxStopped
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
        text: status.attempt > 1 ? terminalTexts.reconnecting : terminalTexts.connecting,
        isFirst: true,
      }
    case 'reconnecting':
      return { kind: 'waiting', text: terminalTexts.connectionLost, untilMs: status.atMs, isFirst: false }
    case 'detached':
      return { kind: 'ended', text: terminalTexts.detached, isGood: true }
    case 'exited': {
      // What a stop ends is not worth the name of a signal.
      if (isStopping)
        return { kind: 'ended', text: stoppedText(isGone || stopReason === 'removed'), isGood: true }
      const { code, signal } = status.exit
      const text = signal === null ? terminalTexts.exited(code) : terminalTexts.killed(signal)
      return { kind: 'ended', text, isGood: code === 0 }
    }
    case 'failed': {
      if (status.error.code === 'revoked') return { kind: 'ended', text: revokedText(isOwn), isGood: false }
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

const { status: statusTexts } = terminalTexts

/** Something that the status bar says of a terminal. */
interface StatusItem {
  readonly text: string
  readonly hint?: string
}

function roundTripText(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

/** What the status bar says of a terminal: of one that is not attached nothing that was true before. */
export function statusItems(
  {
    status,
    role,
    cols,
    rows,
    isSilent,
  }: Pick<TerminalState, 'status' | 'role' | 'cols' | 'rows' | 'isSilent'>,
  roundTripMs: number | undefined,
): readonly StatusItem[] {
  switch (status.is) {
    case 'connecting':
      return [{ text: statusTexts.connecting }]
    case 'reconnecting':
      return [{ text: statusTexts.disconnected }]
    case 'exited':
    case 'detached':
    case 'failed':
      return [{ text: statusTexts.ended }]
    case 'attached': {
      const answer = isSilent
        ? [{ text: statusTexts.noResponse, hint: statusTexts.noResponseHint }]
        : roundTripMs === undefined
          ? []
          : [{ text: roundTripText(roundTripMs), hint: statusTexts.roundTrip }]
      return [
        ...(role === undefined ? [] : [{ text: statusTexts.roles[role] }]),
        { text: `${cols}×${rows}` },
        ...answer,
      ]
    }
  }
}
