import type { ErrorCode, SandwireError } from '@sandwire/protocol'
import { shellQuote } from '@sandwire/shell-quote'
import { formatHint } from '../text/command-line.ts'
import type { CommandName } from '../commands/names.ts'
import type { CredentialKind } from '../server/find-server.ts'
import { SIGNED_OUT } from '../sign-in/stored-sign-in.ts'

/** What somebody was about to do: one of the commands, or to attach, by starting something, joining it or watching it. */
export type Action =
  | CommandName
  | 'start something'
  | 'start a template'
  | 'join a session'
  | 'watch a session'

/** Who was refused where. */
export interface RefusalContext {
  readonly action: Action
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
const OF_SANDBOXES: ReadonlySet<Action> = new Set<CommandName>([
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
export function forbiddenHint({ action, program, sandbox, urlOption }: RefusalContext): string {
  const call = (words: string): string => `${program} ${words}${urlOption}`
  const look = call(sandbox === undefined ? 'sessions' : `sessions ${sandbox}`)
  switch (action) {
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
      return `${OF_SANDBOXES.has(action) ? ASK_OWNER : ASK_OPERATOR}, or see what you may do there: ${call('whoami')}`
  }
}

/** For one who typed, or changed the size, where they may not. */
export function roleHint(action: Action): string {
  return action === 'watch a session'
    ? `leave out --role viewer, or ${ASK_OWNER} for a link to work there`
    : `${ASK_OWNER} for a link to work there, or type nothing and watch`
}

/** What the advice depends on. */
export interface HintContext {
  readonly action: Action
  readonly url: string
  readonly credential: CredentialKind
  /** How this program was called, to be called again. */
  readonly program: string
  /** The server is one of this machine that was found, not named. */
  readonly isLocal?: boolean
  /** How to attach to the session again, when it is kept. */
  readonly reattach: string | undefined
  /** The sandbox that was asked for, by name or id. */
  readonly sandbox?: string | undefined
  /** What makes a command ask the same server: empty, or ` --url …`. */
  readonly urlOption?: string
}

const SAME_VERSION = 'use the same version of sbx-stdio and of the server; --version says which this is'
const OTHER_ADDRESS = 'use the address that the server was started with'
const TOO_OFTEN = 'wait a moment, then try again'
const TOO_MUCH = 'end something that is not needed, or try again later'
const CHECK_PATH = 'check the path; sbx-stdio ls SANDBOX:PATH shows what is there'
const HELP = 'sbx-stdio --help'
const TOO_LONG =
  'give what is long on standard input: -- bash -s < FILE, or copy it there first: sbx-stdio cp FILE SANDBOX:'

/** Advice that depends on nothing but the error. */
const FIXED_HINTS: Partial<Readonly<Record<ErrorCode, string>>> = {
  origin_refused: OTHER_ADDRESS,
  host_refused: OTHER_ADDRESS,
  not_found: 'check the path of the address; without one, /attach is meant',
  command_not_found: 'check the spelling, or run it through a shell: -- bash -lc COMMAND',
  command_not_executable: 'check that it is an executable file',
  spawn_failed: 'check that the command is a program for this machine, and that --cwd exists',
  too_many_sessions: TOO_MUCH,
  too_many_attachments: TOO_MUCH,
  too_many_attaches: TOO_OFTEN,
  too_many_from_address: TOO_OFTEN,
  rate_limited: TOO_MUCH,
  revoked: 'ask the owner for a new link if it was shared with you, or sign in again if you signed out',
  link_spent: 'a link works once: ask whoever shared it for a new one',
  command_blocked: 'the operator of the server does not allow it: ask them, or run something else',
  issuer_unavailable:
    'the issuer, who says who you are, does not answer: try again in a moment, or ask whoever runs it',
  path_refused: 'a path is relative to the workspace, and stays in it',
  file_not_found: CHECK_PATH,
  file_exists: CHECK_PATH,
  not_a_folder: CHECK_PATH,
  is_a_folder: CHECK_PATH,
  folder_not_empty: CHECK_PATH,
  special_file: 'only files and folders are copied',
  file_refused: 'look at its owner and mode in the sandbox: ls -l',
  file_changed: 'something in the sandbox changes it; try again when that is done',
  file_too_large: 'copy it in parts',
  disk_full: 'make room in the sandbox, or create one with a larger --disk',
  timed_out: TOO_OFTEN,
  workspace_unavailable: TOO_OFTEN,
  no_issuer: 'whoever runs the server has to name an issuer: docs/operations.md says how',
  bad_request: HELP,
  upgrade_required: HELP,
  needs_v1: HELP,
  version_unsupported: SAME_VERSION,
  bad_frame: SAME_VERSION,
  provider_unavailable:
    'the server cannot reach what makes sandboxes: look at it, or start it again with npm start',
}

/** What is done with a session, whose id is most of what can be wrong then. */
const JOINING: ReadonlySet<Action> = new Set<Action>(['join a session', 'watch a session'])

/** Stands for a sandbox that is not known. */
const ANY = 'NAME'

/** Commands that help with a sandbox; the first word names it where it is known. */
const COMMANDS: Partial<Readonly<Record<ErrorCode, (name: string) => string>>> = {
  sandbox_not_found: () => 'list',
  sandbox_stopped: (name) => `start ${name}`,
  sandbox_failed: (name) => `logs ${name}`,
  sandbox_unreachable: (name) => `logs ${name}`,
  needs_discard: (name) => `stop ${name} --discard`,
  name_taken: () => 'list',
  too_many_sandboxes: () => 'list',
  too_many_grants: (name) => (name === ANY ? 'grants' : `grants ${name}`),
  bad_template: () => 'templates',
  reauthorise: () => 'whoami',
}

/** What the command is for. */
const COMMAND_HINTS: Partial<Readonly<Record<ErrorCode, string>>> = {
  sandbox_not_found: 'see which there are: ',
  sandbox_stopped: 'start it: ',
  sandbox_failed: 'see why: ',
  sandbox_unreachable: 'see why: ',
  needs_discard: 'its files would be lost; if that is meant: ',
  name_taken: 'choose another name; see which there are: ',
  too_many_sandboxes: 'remove one with rm NAME; see which there are: ',
  too_many_grants: 'make room with revoke GRANT or leave GRANT; see which there are: ',
  bad_template: 'see which there are and what they take: ',
  reauthorise: 'see whether you are still signed in: ',
}

/** How to be let in, for one who was let in so far by this; what follows is the command for it. */
const CREDENTIAL_HINTS: Readonly<Record<CredentialKind, string>> = {
  none: 'give a token with --token-file FILE or SBX_TOKEN, or sign in: ',
  given: 'the token is not accepted here: check --token-file, --token or SBX_TOKEN',
  signIn: 'sign in again: ',
  guest: 'ask whoever shared it for another link, then: ',
  own: 'start the server again with npm start, or sign in: ',
}

function signInCommand({ url, credential, program }: HintContext): string {
  if (credential === 'given') return ''
  return credential === 'guest' ? `${program} join` : `${program} login ${shellQuote(url)}`
}

const REFUSED: Partial<Readonly<Record<CredentialKind, string>>> = {
  signIn: 'sign-in',
  guest: 'guest access',
}

/** What went wrong, for one who was let in so far by this. */
export function messageFor({ code, message }: SandwireError, credential: CredentialKind): string {
  const what = REFUSED[credential]
  if (code !== 'unauthorized' || what === undefined || message.startsWith(SIGNED_OUT)) return message
  return `${SIGNED_OUT}: the server no longer accepts this ${what}: ${message}`
}

/** What to do next about an error. */
export function hintFor(code: ErrorCode, context: HintContext): string {
  const { url, credential, program, reattach, sandbox = ANY, urlOption = '' } = context
  if (code === 'forbidden') return forbiddenHint({ ...context, sandbox: context.sandbox, urlOption })
  if (code === 'role_refused') return roleHint(context.action)
  if (code === 'frame_too_large' && context.action === 'start something') return formatHint(TOO_LONG, program)
  if (code === 'bad_request' && JOINING.has(context.action))
    return `see which there are: ${program} sessions${urlOption}`
  const fixed = FIXED_HINTS[code]
  if (fixed !== undefined) return formatHint(fixed, program)
  const command = COMMANDS[code]?.(sandbox)
  if (command !== undefined) return `${COMMAND_HINTS[code] ?? ''}${program} ${command}${urlOption}`
  if (code === 'unauthorized') return `${CREDENTIAL_HINTS[credential]}${signInCommand(context)}`
  if (code === 'session_not_found' || code === 'session_gone') return `start a new one: ${program} ${url}`
  if (code === 'link_lost' && context.isLocal === true)
    return `check that the server runs, or start it with npm start; its address: ${url}`
  return reattach ?? `check that the server runs, and its address: ${url}`
}
