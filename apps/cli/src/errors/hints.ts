import type { ErrorCode, SandwireError } from '@sandwire/protocol'
import { shellQuote } from '@sandwire/shell-quote'
import type { CommandName } from '../commands/names.ts'
import type { CredentialKind } from '../server/find-server.ts'
import { formatHint } from '../text/command-line.ts'
import { SignedOutError } from './errors.ts'

/** What the user was doing: running a command, or attaching in one of four ways. */
export type Action =
  | CommandName
  | 'start a command'
  | 'start a template'
  | 'join a session'
  | 'watch a session'

/** What a hint depends on besides the error code. */
export interface HintContext {
  readonly action: Action
  readonly url: string
  readonly credential: CredentialKind
  /** How the user calls this program. */
  readonly program: string
  /** The server is one of this machine that was found, not named. */
  readonly isLocal?: boolean
  /** The command that attaches to the session again, if the session is kept. */
  readonly reattach: string | undefined
  /** Name or id of the sandbox, if known. */
  readonly sandbox?: string | undefined
  /** Id of the run, if known. */
  readonly run?: string | undefined
  /** Makes a command use the same server: empty, or ` --url …`. */
  readonly urlOption?: string
}

const SAME_VERSION = 'use the same version of sbx-stdio and the server; see --version'
const OTHER_ADDRESS = 'use the address that the server was started with'
const RETRY_SOON = 'wait a moment, then try again'
const FREE_RESOURCES = 'end sessions you no longer need, or try again later'
const CHECK_PATH = 'check the path; list a folder with: sbx-stdio ls SANDBOX:PATH'
const HELP = 'sbx-stdio --help'
const TOO_LONG = 'pass long input on stdin: -- bash -s < FILE, or copy it first: sbx-stdio cp FILE SANDBOX:'
const ASK_OWNER = 'ask the owner of the sandbox'
const ASK_OPERATOR = 'ask the operator of the server'

/** Hints that depend on nothing but the error. */
const FIXED_HINTS: Partial<Readonly<Record<ErrorCode, string>>> = {
  origin_refused: OTHER_ADDRESS,
  host_refused: OTHER_ADDRESS,
  not_found: 'check the path of the address; the default is /attach',
  command_not_found: 'check the spelling, or run it through a shell: -- bash -lc COMMAND',
  command_not_executable: 'check that it is an executable file',
  spawn_failed: 'check that the command can run on this platform, and that --cwd exists',
  too_many_sessions: FREE_RESOURCES,
  too_many_attachments: FREE_RESOURCES,
  too_many_attaches: RETRY_SOON,
  too_many_from_address: RETRY_SOON,
  rate_limited: FREE_RESOURCES,
  revoked: 'ask the owner for a new link, or sign in again if you signed out',
  link_spent: 'a link works once; ask its owner for a new one',
  command_blocked: 'the operator of the server does not allow this command',
  issuer_unavailable: 'the sign-in service does not respond; try again in a moment',
  path_refused: 'use a path inside the workspace',
  file_not_found: CHECK_PATH,
  file_exists: CHECK_PATH,
  not_a_folder: CHECK_PATH,
  is_a_folder: CHECK_PATH,
  folder_not_empty: CHECK_PATH,
  special_file: 'only files and folders can be copied',
  file_refused: 'check its owner and mode in the sandbox: ls -l',
  file_changed: 'the file is being written to; try again when that is done',
  file_too_large: 'copy it in parts',
  disk_full: 'free disk space in the sandbox, or create one with a larger --disk',
  timed_out: RETRY_SOON,
  workspace_unavailable: RETRY_SOON,
  no_issuer: 'the operator has to configure an issuer; see docs/operations.md',
  agent_not_configured: 'the operator of the server has to set it; see docs/agents.md',
  run_not_started: RETRY_SOON,
  agent_in_use: 'wait until it has finished, or stop it: sbx-stdio runs, or Agents in the workbench',
  git_failed: 'check the message of git above',
  publish_refused:
    'check the rights of the token that the server has for the repository, and the rules of its branches',
  conflict: 'look at the current state, then try again',
  bad_request: HELP,
  upgrade_required: HELP,
  needs_v1: HELP,
  version_unsupported: SAME_VERSION,
  bad_frame: SAME_VERSION,
  store_unavailable: 'files stay as they are; check the store of the server, then try again',
  provider_unavailable: 'the server cannot reach its sandbox host; check it, or restart it with npm start',
}

/** Actions that name a session, whose id is what is usually wrong. */
const ATTACHES_TO_SESSION: ReadonlySet<Action> = new Set<Action>(['join a session', 'watch a session'])

/** Placeholder for a sandbox whose name is not known. */
const ANY = 'NAME'

/** Errors of a request for a run that its state explains. */
const RUN_CODES: ReadonlySet<ErrorCode> = new Set(['run_ended', 'conflict'])

/** Hints that end with a command: what it is for, and the command for this sandbox. */
const COMMAND_HINTS: Partial<Readonly<Record<ErrorCode, readonly [string, (name: string) => string]>>> = {
  sandbox_not_found: ['list your sandboxes: ', () => 'list'],
  sandbox_stopped: ['start it: ', (name) => `start ${name}`],
  sandbox_failed: ['see why: ', (name) => `logs ${name}`],
  version_damaged: ['choose an older version for restore: ', (name) => `checkpoints ${name}`],
  files_missing: ['restore a saved version: ', (name) => `checkpoints ${name}`],
  sandbox_unreachable: ['see why: ', (name) => `logs ${name}`],
  needs_discard: ['to stop it and lose its files: ', (name) => `stop ${name} --discard`],
  name_taken: ['choose another name; list your sandboxes: ', () => 'list'],
  sandbox_destroying: ['wait until it is gone, or choose another name; list your sandboxes: ', () => 'list'],
  too_many_sandboxes: ['remove one with rm NAME; list them: ', () => 'list'],
  run_not_found: ['list your runs: ', () => 'runs'],
  run_ended: ['list your runs: ', () => 'runs'],
  too_many_runs: ['wait until some have ended, or abort some: ', () => 'runs'],
  ceiling_exceeded: ['see what you use and may use: ', () => 'usage'],
  too_many_grants: [
    'remove one with revoke GRANT or leave GRANT; list them: ',
    (name) => (name === ANY ? 'grants' : `grants ${name}`),
  ],
  bad_template: ['list templates and their parameters: ', () => 'templates'],
  reauthorise: ['check whether you are still signed in: ', () => 'whoami'],
}

/** What to do when the server does not accept this kind of credential; a command follows, except for given tokens. */
const CREDENTIAL_HINTS: Readonly<Record<CredentialKind, string>> = {
  none: 'give a token with --token-file FILE or SBX_TOKEN, or sign in: ',
  given: 'the server does not accept this token; check --token-file, --token or SBX_TOKEN',
  signIn: 'sign in again: ',
  guest: 'ask the owner for a new link, then: ',
  local: 'restart the server with npm start, or sign in: ',
}

function signInCommand({ url, credential, program }: HintContext): string {
  if (credential === 'given') return ''
  return credential === 'guest' ? `${program} join` : `${program} login ${shellQuote(url)}`
}

const ENDED_CREDENTIALS: Partial<Readonly<Record<CredentialKind, string>>> = {
  signIn: 'sign-in',
  guest: 'guest access',
}

/** The message to show for an error, given the credential that was used. */
export function messageFor(error: SandwireError, credential: CredentialKind): string {
  const ended = ENDED_CREDENTIALS[credential]
  if (error.code !== 'unauthorized' || ended === undefined || error instanceof SignedOutError)
    return error.message
  return new SignedOutError(`the server no longer accepts this ${ended}: ${error.message}`).message
}

/** Commands about one sandbox, which may belong to another account. */
const SANDBOX_COMMANDS: ReadonlySet<Action> = new Set<CommandName>([
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

/** The hint for a user who is not allowed to do this. */
function forbiddenHint({ action, program, sandbox, urlOption = '' }: HintContext): string {
  const command = (words: string): string => `${program} ${words}${urlOption}`
  const sessions = command(sandbox === undefined ? 'sessions' : `sessions ${sandbox}`)
  switch (action) {
    case 'start a command':
      return `join a session: ${sessions}, or run a template with --template: ${command('templates')}`
    case 'start a template':
      return `${ASK_OWNER}, or join a session: ${sessions}`
    case 'join a session':
      return `${ASK_OWNER}, or watch with --role viewer`
    case 'watch a session':
      return ASK_OWNER
    case 'join':
      return 'if you created this link, send it to the person you want to invite; otherwise ask its owner'
    case 'whoami':
      return ASK_OPERATOR
    default:
      return `${SANDBOX_COMMANDS.has(action) ? ASK_OWNER : ASK_OPERATOR}, or see what you may do: ${command('whoami')}`
  }
}

/** The hint for a user whose role does not allow input or resizing. */
function roleHint(action: Action): string {
  return action === 'watch a session'
    ? `omit --role viewer, or ${ASK_OWNER} for a collaborator link`
    : `${ASK_OWNER} for a collaborator link, or watch without typing`
}

/** What to do next about an error. */
export function hintFor(code: ErrorCode, context: HintContext): string {
  const { url, credential, program, reattach, sandbox = ANY, urlOption = '' } = context
  if (code === 'forbidden') return forbiddenHint(context)
  if (code === 'role_refused') return roleHint(context.action)
  if (code === 'frame_too_large' && context.action === 'start a command') return formatHint(TOO_LONG, program)
  if (RUN_CODES.has(code) && context.run !== undefined)
    return `see how the run is doing: ${program} run show ${context.run}${urlOption}`
  if (code === 'bad_request' && ATTACHES_TO_SESSION.has(context.action))
    return `list your sessions: ${program} sessions${urlOption}`
  const fixed = FIXED_HINTS[code]
  if (fixed !== undefined) return formatHint(fixed, program)
  const commandHint = COMMAND_HINTS[code]
  if (commandHint !== undefined) return `${commandHint[0]}${program} ${commandHint[1](sandbox)}${urlOption}`
  if (code === 'unauthorized') return `${CREDENTIAL_HINTS[credential]}${signInCommand(context)}`
  if (code === 'session_not_found' || code === 'session_gone') return `start a new session: ${program} ${url}`
  if (code === 'link_lost' && context.isLocal === true)
    return `check that the server is running at ${url}, or start it with npm start`
  return reattach ?? `check that the server is running at ${url}`
}
