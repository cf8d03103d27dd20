import { Wrong } from '../options/words.ts'
import type { ReadWords } from './command.ts'
import { isSessionBeginning } from './session-id.ts'

/** Names and ids of sandboxes. */
export const SANDBOX_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

function single({ positionals }: ReadWords, what: string): string | undefined {
  const [first, second] = positionals
  if (second !== undefined) throw new Wrong(`Give one ${what}`)
  return first
}

/** No further words, please. */
export function readNothing(words: ReadWords): void {
  const [first] = words.positionals
  if (first !== undefined) throw new Wrong('There is a word too many')
}

/** A sandbox by name or id, if one is given. It becomes a part of a path, so it is checked here too. */
export function readOptionalSandbox(words: ReadWords): string | undefined {
  const text = single(words, 'sandbox')
  if (text !== undefined && !SANDBOX_NAME.test(text))
    throw new Wrong('A sandbox has a name of lower-case letters, digits and inner hyphens, at most 63')
  return text
}

export function readSandbox(words: ReadWords): string {
  const text = readOptionalSandbox(words)
  if (text === undefined) throw new Wrong('No sandbox is given', 'sbx-stdio list')
  return text
}

/** A session by its id, or by how that begins. */
export function readSession(words: ReadWords): string {
  const text = single(words, 'session')
  if (text === undefined) throw new Wrong('No session is given', 'sbx-stdio sessions')
  if (!isSessionBeginning(text)) throw new Wrong('This is not the id of a session', 'sbx-stdio sessions')
  return text
}

/** The address of a server, if one is given. */
export function readOptionalUrl(words: ReadWords): string | undefined {
  return single(words, 'address')
}

const GRANT = /^[0-9a-z]{32}\.[0-9a-z]{1,64}$/

/** A grant by its id; `listed` is the command that lists such. */
export function readGrant(words: ReadWords, listed: string): string {
  const text = single(words, 'grant')
  if (text === undefined) throw new Wrong('No grant is given', `sbx-stdio ${listed}`)
  if (!GRANT.test(text)) throw new Wrong('This is not the id of a grant', `sbx-stdio ${listed}`)
  return text
}

/** The id of a session behind an option, or how that begins. */
export function readSessionOption(words: ReadWords): string | undefined {
  const text = words.one('session')
  if (text !== undefined && !isSessionBeginning(text))
    throw new Wrong('Option "--session" takes the id of a session', 'sbx-stdio sessions')
  return text
}
