import type { TerminalState } from '@sandwire/react'

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
      return [{ text: 'Connecting' }]
    case 'reconnecting':
      return [{ text: 'Not connected' }]
    case 'exited':
    case 'detached':
    case 'failed':
      return [{ text: 'Ended' }]
    case 'attached': {
      const answer = isSilent
        ? [{ text: 'No answer', hint: 'The server has not answered for some seconds' }]
        : roundTripMs === undefined
          ? []
          : [{ text: roundTripText(roundTripMs), hint: 'Round-trip time' }]
      const words = { driver: 'You drive', collaborator: 'You type', viewer: 'You watch' }
      return [...(role === undefined ? [] : [{ text: words[role] }]), { text: `${cols}×${rows}` }, ...answer]
    }
  }
}
