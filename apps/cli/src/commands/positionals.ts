import { UsageError } from '../options/words.ts'
import type { CommandOptions } from './command.ts'
import { isSessionPrefix } from './session-id.ts'

/** Names and ids of sandboxes. */
export const SANDBOX_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

function single({ positionals }: CommandOptions, what: string): string | undefined {
  const [first, second] = positionals
  if (second !== undefined) throw new UsageError(`Give one ${what}`)
  return first
}

/** No further words, please. */
export function requireNoPositionals(words: CommandOptions): void {
  const [first] = words.positionals
  if (first !== undefined) throw new UsageError('There is a word too many')
}

/** A sandbox by name or id, if one is given. It becomes a part of a path, so it is checked here too. */
export function optionalSandbox(words: CommandOptions): string | undefined {
  const text = single(words, 'sandbox')
  if (text !== undefined && !SANDBOX_NAME.test(text))
    throw new UsageError('A sandbox has a name of lower-case letters, digits and inner hyphens, at most 63')
  return text
}

export function readSandbox(words: CommandOptions): string {
  const text = optionalSandbox(words)
  if (text === undefined) throw new UsageError('No sandbox is given', 'sbx-stdio list')
  return text
}

/** A session by its id, or by how that begins. */
export function readSession(words: CommandOptions): string {
  const text = single(words, 'session')
  if (text === undefined) throw new UsageError('No session is given', 'sbx-stdio sessions')
  if (!isSessionPrefix(text)) throw new UsageError('This is not the id of a session', 'sbx-stdio sessions')
  return text
}

/** The address of a server, if one is given. */
export function optionalUrl(words: CommandOptions): string | undefined {
  return single(words, 'address')
}

const GRANT = /^[0-9a-z]{32}\.[0-9a-z]{1,64}$/

/** A grant by its id; `listed` is the command that lists such. */
export function readGrant(words: CommandOptions, listed: string): string {
  const text = single(words, 'grant')
  if (text === undefined) throw new UsageError('No grant is given', `sbx-stdio ${listed}`)
  if (!GRANT.test(text)) throw new UsageError('This is not the id of a grant', `sbx-stdio ${listed}`)
  return text
}

/** The id of a session behind an option, or how that begins. */
export function sessionOption(words: CommandOptions): string | undefined {
  const text = words.one('session')
  if (text !== undefined && !isSessionPrefix(text))
    throw new UsageError('Option "--session" takes the id of a session', 'sbx-stdio sessions')
  return text
}
