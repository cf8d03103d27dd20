import { UsageError } from '../errors/errors.ts'
import type { CommandOptions } from './command.ts'
import { printable } from '../text/printable.ts'
import { isSessionPrefix } from './session-id.ts'

/** Names and ids of sandboxes. */
export const SANDBOX_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

function single({ positionals }: CommandOptions, what: string): string | undefined {
  const [first, second] = positionals
  if (second !== undefined) throw new UsageError(`Give only one ${what}`)
  return first
}

export function requireNoPositionals(options: CommandOptions): void {
  const [first] = options.positionals
  if (first !== undefined) throw new UsageError(`Unexpected argument "${printable(first)}"`)
}

/** Name or id of a sandbox, if given. Validated because it becomes part of a URL path. */
export function optionalSandbox(options: CommandOptions): string | undefined {
  const text = single(options, 'sandbox')
  if (text !== undefined && !SANDBOX_NAME.test(text))
    throw new UsageError('Invalid sandbox name: use lower-case letters, digits and hyphens (max 63)')
  return text
}

export function requireSandbox(options: CommandOptions): string {
  const text = optionalSandbox(options)
  if (text === undefined) throw new UsageError('No sandbox is given', 'sbx-stdio list')
  return text
}

/** Id of a session, or a prefix of it. */
export function requireSession(options: CommandOptions): string {
  const text = single(options, 'session')
  if (text === undefined) throw new UsageError('No session is given', 'sbx-stdio sessions')
  if (!isSessionPrefix(text)) throw new UsageError('This is not a session id', 'sbx-stdio sessions')
  return text
}

/** Address of a server, if given. */
export function optionalUrl(options: CommandOptions): string | undefined {
  return single(options, 'address')
}

const GRANT = /^[0-9a-z]{32}\.[0-9a-z]{1,64}$/

/** Id of a grant; `hintCommand` is the command that lists grants. */
export function requireGrant(options: CommandOptions, hintCommand: string): string {
  const text = single(options, 'grant')
  if (text === undefined) throw new UsageError('No grant is given', `sbx-stdio ${hintCommand}`)
  if (!GRANT.test(text)) throw new UsageError('This is not a grant id', `sbx-stdio ${hintCommand}`)
  return text
}

/** Value of `--session`: an id, or a prefix of it. */
export function sessionOption(options: CommandOptions): string | undefined {
  const text = options.value('session')
  if (text !== undefined && !isSessionPrefix(text))
    throw new UsageError('Option "--session" must be a session id', 'sbx-stdio sessions')
  return text
}
