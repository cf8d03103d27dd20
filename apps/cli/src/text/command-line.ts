import { shellQuote } from '@sandwire/shell-quote'
import type { HeldGrant } from '../commands/responses.ts'
import type { RunOptions } from '../options/attach-options.ts'
import { printable } from './printable.ts'

/**
 * The command line that attaches to the same session again. The session's id says which sandbox it is in; a token given
 * on the command line is not repeated.
 */
export function reattachCommand(
  program: string,
  { typedUrl, role, tokenFile }: Pick<RunOptions, 'typedUrl' | 'role' | 'tokenFile'>,
  session: string,
): string {
  const words = [typedUrl, '--session', session]
  if (role !== undefined) words.push('--role', role)
  if (tokenFile !== undefined) words.push('--token-file', tokenFile)
  return `${program} ${words.map(shellQuote).join(' ')}`
}

/** A span as people say it. */
export function formatSeconds(seconds: number): string {
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} days`
}

/** Where Bun mounts the files of a compiled executable. */
const COMPILED = '/$bunfs/'

/** How this program is called again: through `npx` or from a checkout, where `npx` finds it, or else by its name. */
export function programName(
  env: Readonly<Record<string, string | undefined>>,
  main: string = Bun.main,
): string {
  return env['npm_command'] === 'exec' || !main.startsWith(COMPILED) ? 'npx sbx-stdio' : 'sbx-stdio'
}

/** A hint that is a command line of this program, or ends with one, as it is called here; other hints stay as they are. */
export function formatHint(hint: string, program: string): string {
  return hint.replace(/(^|[:;] )sbx-stdio (?=\S)/g, `$1${program} `)
}

type Shared = Pick<HeldGrant, 'role' | 'sandbox' | 'session'>

/** The words that attach to what was shared; undefined when there is nothing yet to attach to. */
export function attachArguments(
  server: string,
  { role, sandbox, session }: Shared,
): readonly string[] | undefined {
  if (session !== undefined && session !== null)
    return [server, '--session', session, ...(role === 'viewer' ? ['--role', 'viewer'] : [])]
  return role === 'viewer' ? undefined : [server, '--sandbox', sandbox, '--no-create']
}

/** The command line that goes to what was shared, or shows what could be gone to. */
export function accessCommand(program: string, server: string, shared: Shared): string {
  const words = attachArguments(server, shared) ?? ['sessions', shared.sandbox, '--url', server]
  return `${program} ${words.map((word) => shellQuote(printable(word))).join(' ')}`
}
