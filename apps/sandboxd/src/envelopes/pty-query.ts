import { SandwireError } from '@sandwire/protocol'
import { type AttachParameters, parseAttach } from '../http/attach-parameters.ts'
import type { SessionHost } from '../sessions/session-host.ts'

/** What an upgrade to the envelope of terminals asks for. */
export interface PtyQuery {
  readonly parameters: AttachParameters
  /** `ended=0`: a session whose end somebody was told is none any more. */
  readonly takesEnded: boolean
}

/** Decodes a query: that of an attach in `sandwire.v1`, always of a terminal. Throws `bad_request`. */
export function parsePtyQuery(query: URLSearchParams): PtyQuery {
  const rest = new URLSearchParams(query)
  const [ended = '1', ...more] = rest.getAll('ended')
  rest.delete('ended')
  if (more.length > 0 || (ended !== '0' && ended !== '1'))
    throw new SandwireError('bad_request', 'Cannot use parameter "ended": expected 0 or 1')
  if (!rest.has('session')) rest.append('mode', 'pty')
  return { parameters: parseAttach(rest, 'v1'), takesEnded: ended === '1' }
}

/** Throws unless the session is a terminal that the query means. */
export function checkPtySession(
  { session, isEndTold }: Pick<SessionHost, 'session' | 'isEndTold'>,
  { takesEnded }: PtyQuery,
): void {
  if (session.options.mode !== 'pty') throw new SandwireError('session_not_found', 'No terminal has this id')
  if (session.state.is === 'exited' && isEndTold && !takesEnded)
    throw new SandwireError('session_gone', 'The session has ended')
}
