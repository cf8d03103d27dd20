import { UsageError } from '../options/words.ts'
import type { Api } from '../server/api.ts'
import { decodeSessions } from './responses.ts'

/** The id of a sandbox, a dot, and what is the session's own. */
const WHOLE = /^[0-9a-z]{32}\.[0-9a-z]{26}$/
/** Shorter ones say too little to act on. */
const BEGINNING = /^[0-9a-z]{4,32}(\.[0-9a-z]{0,26})?$/

export function isFullSessionId(text: string): boolean {
  return WHOLE.test(text)
}

/** Whether this may be the beginning of an id, or of what is the session's own in it. */
export function isSessionPrefix(text: string): boolean {
  return BEGINNING.test(text)
}

/** The sandbox that a session is in, as its id tells. */
export function sandboxIdOf(session: string): string | undefined {
  return isFullSessionId(session) ? session.slice(0, session.indexOf('.')) : undefined
}

/** The ids in the list of the server that begin so, with their sandbox or without. */
export async function findSessions(api: Pick<Api, 'request'>, beginning: string): Promise<readonly string[]> {
  const sessions = decodeSessions(await api.request('GET', '/api/account/sessions'))
  return sessions
    .map(({ id }) => id)
    .filter(
      (id) => isFullSessionId(id) && (id.startsWith(beginning) || id.split('.')[1]?.startsWith(beginning)),
    )
}

/** Which of these is meant. Throws `UsageError` unless there is one. */
export function singleSession(found: readonly string[], beginning: string, urlOption: string): string {
  const [first, second] = found
  const hint = `sbx-stdio sessions${urlOption}`
  if (first === undefined) throw new UsageError(`No session begins with "${beginning}"`, hint)
  if (second !== undefined) throw new UsageError(`Several sessions begin with "${beginning}"`, hint)
  return first
}

/** The whole id of a session that was typed whole or by its beginning. Throws `UsageError`. */
export async function resolveSession(
  text: string,
  { api, urlOption }: { readonly api: Pick<Api, 'request'>; readonly urlOption: string },
): Promise<string> {
  if (isFullSessionId(text)) return text
  return singleSession(await findSessions(api, text), text, urlOption)
}
