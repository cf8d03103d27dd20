import type { ErrorCode } from '@sandwire/protocol'

/** What the advice depends on. */
export interface HintContext {
  readonly url: string
  readonly hasToken: boolean
  /** How to attach to the session again, when it is kept. */
  readonly comeBack: string | undefined
}

const SAME_VERSION = 'use the same version of sbx-stdio and of the server: sbx-stdio --version'
const NOT_ALLOWED = 'this token does not allow it: ask whoever runs the sandbox, or try --role viewer'
const TOO_MUCH = 'end something that is not needed, or try again later'
const HELP = 'sbx-stdio --help'

/** Advice that depends on nothing but the error. */
const FIXED: Partial<Readonly<Record<ErrorCode, string>>> = {
  forbidden: NOT_ALLOWED,
  origin_refused: NOT_ALLOWED,
  role_refused: NOT_ALLOWED,
  host_refused: 'use the address that the server was started with',
  not_found: 'check the path of the address; without one, /attach is meant',
  command_not_found: 'check the spelling, or run it through a shell: -- bash -lc COMMAND',
  command_not_executable: 'check that it is an executable file',
  spawn_failed: 'check that the command is a program for this machine, and that --cwd exists',
  too_many_sessions: TOO_MUCH,
  too_many_attachments: TOO_MUCH,
  rate_limited: TOO_MUCH,
  bad_request: HELP,
  upgrade_required: HELP,
  needs_v1: HELP,
  version_unsupported: SAME_VERSION,
  bad_frame: SAME_VERSION,
}

/** What to do next about an error. */
export function hintFor(code: ErrorCode, { url, hasToken, comeBack }: HintContext): string {
  const fixed = FIXED[code]
  if (fixed !== undefined) return fixed
  if (code === 'unauthorized') {
    return hasToken
      ? 'the token is not accepted here: check --token-file, --token or SBX_TOKEN'
      : 'give a token with --token-file FILE or SBX_TOKEN'
  }
  if (code === 'session_not_found' || code === 'session_gone') return `start a new one: sbx-stdio ${url}`
  return comeBack ?? `check that the server runs, and its address: ${url}`
}
