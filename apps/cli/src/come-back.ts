import type { RunOptions } from './arguments.ts'

/** A word as a POSIX shell reads it back. */
export function quote(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

/**
 * The command line that attaches to the same session again. The session's id says which sandbox it is in; a token given
 * on the command line is not repeated.
 */
export function comeBackLine(
  program: string,
  { typedUrl, role, tokenFile }: Pick<RunOptions, 'typedUrl' | 'role' | 'tokenFile'>,
  session: string,
): string {
  const words = [typedUrl, '--session', session]
  if (role !== undefined) words.push('--role', role)
  if (tokenFile !== undefined) words.push('--token-file', tokenFile)
  return `${program} ${words.map(quote).join(' ')}`
}

/** A span as people say it. */
export function spellSeconds(seconds: number): string {
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return `${Math.round(seconds / 3600)} h`
}

/** How this program was called: through `npx`, or by its name. */
export function programName(env: Readonly<Record<string, string | undefined>>): string {
  return env['npm_command'] === 'exec' ? 'npx sbx-stdio' : 'sbx-stdio'
}
