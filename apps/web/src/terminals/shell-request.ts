import type { AttachRequest } from '@sandwire/react'
import type { View } from '../layout/layout.ts'
import type { FirstCommand } from './terminal-shelf.ts'

/** How long a shell waits for a page that was closed: a night. */
const KEEP_SECONDS = 12 * 60 * 60

/** What a terminal asks for: the session that it shows, or a shell, or a command in place of one. */
export function shellRequest(
  { sandbox, session, cwd }: Extract<View, { kind: 'terminal' }>,
  command?: FirstCommand,
): AttachRequest {
  if (session !== undefined) return { sandbox, session }
  return { sandbox, keepSeconds: KEEP_SECONDS, ...(cwd === undefined ? {} : { cwd }), ...command }
}
