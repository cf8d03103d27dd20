import { shellQuote } from '@sandwire/shell-quote'
import type { HeldGrant } from '../commands/responses.ts'
import type { RunOptions } from '../options/attach-options.ts'
import { printable } from './printable.ts'

/**
 * The command that attaches to the same session again. The session id includes the sandbox; a token given on the command
 * line is not repeated.
 */
export function reattachCommand(
  program: string,
  { typedUrl, role, tokenFile }: Pick<RunOptions, 'typedUrl' | 'role' | 'tokenFile'>,
  session: string,
): string {
  const argv = [typedUrl, '--session', session]
  if (role !== undefined) argv.push('--role', role)
  if (tokenFile !== undefined) argv.push('--token-file', tokenFile)
  return `${program} ${argv.map(shellQuote).join(' ')}`
}

/** A duration, rounded to a readable unit. */
export function formatSeconds(seconds: number): string {
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} days`
}

/** Where Bun mounts the files of a compiled executable. */
const COMPILED = '/$bunfs/'

/** How the user calls this program: by its name when compiled, otherwise through `npx`. */
export function programName(
  env: Readonly<Record<string, string | undefined>>,
  main: string = Bun.main,
): string {
  return env['npm_command'] === 'exec' || !main.startsWith(COMPILED) ? 'npx sbx-stdio' : 'sbx-stdio'
}

/** Replaces `sbx-stdio` by the program name in hints that are, or end with, a command. */
export function formatHint(hint: string, program: string): string {
  return hint.replace(/(^|[:;] )sbx-stdio (?=\S)/g, `$1${program} `)
}

type GrantTarget = Pick<HeldGrant, 'role' | 'sandbox' | 'session'>

/** Arguments that attach to a grant; undefined when it has nothing to attach to: a viewer of a whole sandbox. */
export function attachArguments(
  server: string,
  { role, sandbox, session }: GrantTarget,
): readonly string[] | undefined {
  if (session !== undefined && session !== null)
    return [server, '--session', session, ...(role === 'viewer' ? ['--role', 'viewer'] : [])]
  return role === 'viewer' ? undefined : [server, '--sandbox', sandbox, '--no-create']
}

/** The command that attaches to a grant, or lists the sessions of its sandbox. */
export function accessCommand(program: string, server: string, grant: GrantTarget): string {
  const argv = attachArguments(server, grant) ?? ['sessions', grant.sandbox, '--url', server]
  return `${program} ${argv.map((argument) => shellQuote(printable(argument))).join(' ')}`
}
