import { shellQuote } from '@sandwire/shell-quote'
import { printable } from '../text/printable.ts'
import type { HeldGrant } from './sharing-views.ts'

type Shared = Pick<HeldGrant, 'role' | 'sandbox' | 'session'>

/** The words that attach to what was shared; undefined when there is nothing yet to attach to. */
export function attachWords(
  server: string,
  { role, sandbox, session }: Shared,
): readonly string[] | undefined {
  if (session !== undefined && session !== null)
    return [server, '--session', session, ...(role === 'viewer' ? ['--role', 'viewer'] : [])]
  return role === 'viewer' ? undefined : [server, '--sandbox', sandbox, '--no-create']
}

/** The command line that goes to what was shared, or shows what could be gone to. */
export function wayThere(program: string, server: string, shared: Shared): string {
  const words = attachWords(server, shared) ?? ['sessions', shared.sandbox, '--url', server]
  return `${program} ${words.map((word) => shellQuote(printable(word))).join(' ')}`
}
