import type { CommandName } from '../commands/names.ts'

/** What somebody was about to do: one of the commands, or to attach, by starting something, joining it or watching it. */
export type Doing =
  | CommandName
  | 'start something'
  | 'start a template'
  | 'join a session'
  | 'watch a session'

/** Who was refused where. */
export interface RefusalContext {
  readonly doing: Doing
  /** How this program was called, to be called again. */
  readonly program: string
  /** The sandbox that was asked for, by name or id, where it is known. */
  readonly sandbox: string | undefined
  /** What makes a command ask the same server: empty, or ` --url …`. */
  readonly urlOption: string
}

const ASK_OWNER = 'ask the owner of the sandbox'
const ASK_OPERATOR = 'ask whoever runs the server'

/** Commands about a sandbox that may be somebody else's. */
const OF_SANDBOXES: ReadonlySet<Doing> = new Set<CommandName>([
  'start',
  'stop',
  'rm',
  'sessions',
  'kill',
  'logs',
  'cp',
  'ls',
  'share',
  'grants',
  'revoke',
])

/** What somebody can do who may not do what they were about to. */
export function hintForRefusal({ doing, program, sandbox, urlOption }: RefusalContext): string {
  const call = (words: string): string => `${program} ${words}${urlOption}`
  const look = call(sandbox === undefined ? 'sessions' : `sessions ${sandbox}`)
  switch (doing) {
    case 'start something':
      return `see what runs there: ${look}, or run what the server has ready with --template: ${call('templates')}`
    case 'start a template':
      return `${ASK_OWNER}, or see what runs there: ${look}`
    case 'join a session':
      return `${ASK_OWNER}, or only watch: --role viewer`
    case 'watch a session':
      return ASK_OWNER
    case 'join':
      return 'a link is for somebody else than who made it; if you did not, ask whoever did'
    case 'whoami':
      return ASK_OPERATOR
    default:
      return `${OF_SANDBOXES.has(doing) ? ASK_OWNER : ASK_OPERATOR}, or see what you may do there: ${call('whoami')}`
  }
}

/** For one who typed, or changed the size, where they may not. */
export function hintForRole(doing: Doing): string {
  return doing === 'watch a session'
    ? `leave out --role viewer, or ${ASK_OWNER} for a link to work there`
    : `${ASK_OWNER} for a link to work there, or type nothing and watch`
}
