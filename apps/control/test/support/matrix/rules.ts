import type { Policy } from '../../../src/routes/policies.ts'

/** The kinds of callers, and their highest right on the sandbox and on its session. */
export const CALLERS = {
  owner: { sandbox: 'own', session: 'own', drives: true },
  collaborator: { sandbox: 'work', session: 'work', drives: true },
  viewer: { sandbox: 'see', session: 'see', drives: false },
  // Has a grant on one session; the sandbox does not exist for them.
  'session guest': { sandbox: undefined, session: 'watch', drives: false },
  stranger: { sandbox: undefined, session: undefined, drives: false },
  revoked: { sandbox: undefined, session: undefined, drives: false },
  none: { sandbox: undefined, session: undefined, drives: false },
} as const
export type CallerKind = keyof typeof CALLERS

/** Scopes per kind of credential. */
export const CREDENTIALS = {
  'all scopes': ['connect', 'exec', 'admin'],
  'connect only': ['connect'],
  'all but connect': ['exec', 'admin'],
} as const
export type CredentialKind = keyof typeof CREDENTIALS

type Scope = 'connect' | 'exec' | 'admin' | 'operator'

/** What a request names, and the error code for a caller without access. */
export const MISSING = {
  sandbox: 'sandbox_not_found',
  session: 'session_not_found',
  grant: 'not_found',
  run: 'run_not_found',
  conversation: 'not_found',
} as const

/** The requirements of a verb beyond the policy of its route. */
export interface Requirement {
  readonly names?: keyof typeof MISSING
  /** Replaces the need of the route. */
  readonly need?: 'see' | 'work' | 'own'
  readonly scope?: Scope
  /** Only the holder of the grant is allowed, not even the owner. */
  readonly heldBy?: CallerKind
  /** Requests the role driver. */
  readonly drives?: boolean
}

const ORDER = ['watch', 'see', 'work', 'own']

/** The expected outcome: `allowed`, or an error code. Checks authentication, then scopes, then access. */
export function expectedOf(
  policy: Exclude<Policy, 'public'>,
  { names = 'sandbox', need: extraNeed, scope: extraScope, heldBy, drives = false }: Requirement,
  [client, credential]: readonly [CallerKind, CredentialKind],
): string {
  const scopes: readonly string[] = CREDENTIALS[credential]
  const need = extraNeed ?? policy.need
  if (client === 'none') return 'unauthorized'
  if (!scopes.includes('connect') || !scopes.includes(policy.scope)) return 'forbidden'
  if (extraScope !== undefined && !scopes.includes(extraScope)) return 'forbidden'
  if (heldBy !== undefined) return client === heldBy ? 'allowed' : MISSING.grant
  if (need === 'self') return 'allowed'
  const has = CALLERS[client][names === 'session' ? 'session' : 'sandbox']
  if (has === undefined) return MISSING[names]
  if (ORDER.indexOf(has) < ORDER.indexOf(need)) return 'forbidden'
  // Input to a process that is not a template can run any command.
  return drives && !(CALLERS[client].drives && scopes.includes('exec')) ? 'forbidden' : 'allowed'
}
