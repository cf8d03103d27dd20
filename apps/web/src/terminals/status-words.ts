import type { TerminalState } from '@sandwire/react'
import { terminalTexts } from '../texts/terminals.ts'

const { status: texts } = terminalTexts

/** Something that the status bar says of a terminal. */
export interface StatusWord {
  readonly text: string
  readonly hint?: string
}

function roundTripText(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

/** What the status bar says of a terminal: of one that is not attached nothing that was true before. */
export function statusWordsOf(
  {
    status,
    role,
    cols,
    rows,
    isSilent,
  }: Pick<TerminalState, 'status' | 'role' | 'cols' | 'rows' | 'isSilent'>,
  roundTripMs: number | undefined,
): readonly StatusWord[] {
  switch (status.is) {
    case 'connecting':
      return [{ text: texts.connecting }]
    case 'reconnecting':
      return [{ text: texts.disconnected }]
    case 'exited':
    case 'detached':
    case 'failed':
      return [{ text: texts.ended }]
    case 'attached': {
      const answer = isSilent
        ? [{ text: texts.noResponse, hint: texts.noResponseHint }]
        : roundTripMs === undefined
          ? []
          : [{ text: roundTripText(roundTripMs), hint: texts.roundTrip }]
      return [
        ...(role === undefined ? [] : [{ text: texts.roles[role] }]),
        { text: `${cols}×${rows}` },
        ...answer,
      ]
    }
  }
}
