import { UsageError } from '../errors/errors.ts'
import type { CommandOptions } from './command.ts'
import { SANDBOX_NAME } from './positionals.ts'

const VERSION = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** `SANDBOX@VERSION`; a version is a name or a number. Validated because both become parts of a URL path. */
export function requireVersion({ positionals }: CommandOptions): {
  readonly sandbox: string
  readonly version: string
} {
  const [text, extra] = positionals
  if (text === undefined || extra !== undefined)
    throw new UsageError('Give one version as SANDBOX@VERSION', 'sbx-stdio checkpoints SANDBOX')
  return parseVersion(text)
}

/** Reads one such argument. */
export function parseVersion(text: string): { readonly sandbox: string; readonly version: string } {
  const [sandbox = '', version = '', rest] = text.split('@')
  if (rest !== undefined || !SANDBOX_NAME.test(sandbox) || !VERSION.test(version))
    throw new UsageError(
      'This is not a version: write SANDBOX@NAME or SANDBOX@NUMBER',
      'sbx-stdio checkpoints SANDBOX',
    )
  return { sandbox, version }
}
