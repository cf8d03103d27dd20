import type { RunOptions } from './arguments.ts'

/** A word as a POSIX shell reads it back. */
export function quote(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

/** The command line that attaches to the same session again. A token given on the command line is not repeated. */
export function comeBackLine(
  { typedUrl, sandbox, role, tokenFile }: Pick<RunOptions, 'typedUrl' | 'sandbox' | 'role' | 'tokenFile'>,
  session: string,
): string {
  const words = ['sbx-stdio', typedUrl, '--session', session]
  if (sandbox !== undefined) words.push('--sandbox', sandbox)
  if (role !== undefined) words.push('--role', role)
  if (tokenFile !== undefined) words.push('--token-file', tokenFile)
  return words.map(quote).join(' ')
}

/** A span as people say it. */
export function spellSeconds(seconds: number): string {
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return `${Math.round(seconds / 3600)} h`
}
