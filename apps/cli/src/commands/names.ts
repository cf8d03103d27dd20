/** Commands; any other first argument is the address of a server to attach to. */
export const COMMAND_NAMES = [
  'list',
  'create',
  'start',
  'stop',
  'rm',
  'checkpoint',
  'checkpoints',
  'restore',
  'fork',
  'diff',
  'sessions',
  'kill',
  'logs',
  'cp',
  'ls',
  'tmux',
  'templates',
  'login',
  'logout',
  'whoami',
  'share',
  'grants',
  'revoke',
  'leave',
  'join',
  'audit',
  'usage',
  'agent',
  'runs',
  'run',
] as const
export type CommandName = (typeof COMMAND_NAMES)[number]

export function isCommandName(word: string | undefined): word is CommandName {
  return COMMAND_NAMES.some((name) => name === word)
}
