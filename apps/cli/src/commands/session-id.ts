import { UsageError } from '../errors/errors.ts'
import type { Api } from '../server/api.ts'
import { decodeSessions } from './responses.ts'

/** The id of the sandbox, a dot, and the session's own part. */
const FULL = /^[0-9a-z]{32}\.[0-9a-z]{26}$/
/** Shorter prefixes are too ambiguous to act on. */
const PREFIX = /^[0-9a-z]{4,32}(\.[0-9a-z]{0,26})?$/

export function isFullSessionId(text: string): boolean {
  return FULL.test(text)
}

/** True for a prefix of an id, or of the session's own part of it. */
export function isSessionPrefix(text: string): boolean {
  return PREFIX.test(text)
}

/** The id of the sandbox in the id of a session. */
export function sandboxIdOf(session: string): string | undefined {
  return isFullSessionId(session) ? session.slice(0, session.indexOf('.')) : undefined
}

/** Session ids with this prefix, with or without the id of the sandbox. */
export async function findSessions(api: Pick<Api, 'request'>, prefix: string): Promise<readonly string[]> {
  const sessions = decodeSessions(await api.request('GET', '/api/account/sessions'))
  return sessions
    .map(({ id }) => id)
    .filter((id) => isFullSessionId(id) && (id.startsWith(prefix) || id.split('.')[1]?.startsWith(prefix)))
}

/** The only id that was found. Throws `UsageError` for none or several. */
export function singleSession(found: readonly string[], prefix: string, urlOption: string): string {
  const [first, second] = found
  const hint = `sbx-stdio sessions${urlOption}`
  if (first === undefined) throw new UsageError(`No session id starts with "${prefix}"`, hint)
  if (second !== undefined) throw new UsageError(`Several session ids start with "${prefix}"`, hint)
  return first
}

/** The full id for an id or a unique prefix. Throws `UsageError`. */
export async function resolveSession(
  text: string,
  { api, urlOption }: { readonly api: Pick<Api, 'request'>; readonly urlOption: string },
): Promise<string> {
  if (isFullSessionId(text)) return text
  return singleSession(await findSessions(api, text), text, urlOption)
}
