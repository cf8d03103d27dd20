import type { TerminalState } from '@sandwire/react'
import { terminalTexts } from '../texts/terminals.ts'

/** The banner of a terminal that is not attached. */
export type Banner =
  | {
      readonly kind: 'waiting'
      readonly text: string
      readonly untilMs?: number
      /** The terminal is still empty. */
      readonly isFirst: boolean
    }
  | { readonly kind: 'ended'; readonly text: string; readonly isGood: boolean }

/** What to do about an error, by its code. */
const ADVICE: Readonly<Record<string, string>> = terminalTexts.advice

/** Messages for resources that do not exist or are not accessible, which the server does not distinguish. */
const MISSING: Readonly<Record<string, string>> = terminalTexts.missing

/** An owner's own access is only revoked by ending the sign-in. */
function revokedText(isOwn: boolean): string {
  return isOwn ? terminalTexts.signedOut : terminalTexts.accessRemoved
}

function stoppedText(isGone: boolean): string {
  return isGone ? terminalTexts.sandboxDestroyed : terminalTexts.sandboxStopped
}

/** The banner for a terminal's state; undefined while attached. */
export function bannerOf(
  {
    status,
    isStopping = false,
    stopReason,
  }: Pick<TerminalState, 'status'> & Partial<Pick<TerminalState, 'isStopping' | 'stopReason'>>,
  { isOwn = false, isGone = false }: { readonly isOwn?: boolean; readonly isGone?: boolean } = {},
): Banner | undefined {
  switch (status.kind) {
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
      // The signal that a stopping sandbox sends is not worth mentioning.
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

/** An entry of the status bar. */
interface StatusItem {
  readonly text: string
  readonly hint?: string
}

function roundTripText(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

/** The status bar entries of a terminal; only current facts. */
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
  switch (status.kind) {
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
