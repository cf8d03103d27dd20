import { commandName } from '../audit/entry.ts'
import type { Deed } from './audit-trail.ts'
import type { AttachCall } from './call.ts'

/** What a row says: known before, or from what came of it, which is undefined when nothing did. */
export type About<T> = Partial<Deed> | ((value: T | undefined) => Partial<Deed>)

/** The command of a request by its name, which is all that is ever written down of it. */
export function commandOf({ cmd }: { readonly cmd?: string }): Pick<Deed, 'command'> {
  return cmd === undefined ? {} : { command: commandName(cmd) }
}

/** What the audit says of an attach. */
export function deedOf({ joins, session, query }: AttachCall): Deed {
  if (joins !== undefined) return { action: 'session.join', session: joins }
  const cmd = new URLSearchParams(query).get('cmd') ?? undefined
  return { action: 'session.start', session, ...commandOf(cmd === undefined ? {} : { cmd }) }
}
