/** What runs when no command is named, and what reads a text as commands. */
export const SHELLS: readonly string[] = [
  'sh',
  'bash',
  'dash',
  'zsh',
  'ksh',
  'mksh',
  'ash',
  'rbash',
  'fish',
  'csh',
  'tcsh',
  'busybox',
  'pwsh',
]

/** The last part of a command's path, by which blocklists know it. */
export function commandName(command: string): string {
  return command.replace(/\/+$/, '').split('/').at(-1) ?? ''
}
