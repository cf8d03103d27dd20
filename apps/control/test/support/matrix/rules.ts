import type { Policy } from '../../../src/routes/policies.ts'

/** Everybody who could ask, and the most that they may do with what is asked about. */
export const PEOPLE = {
  owner: { sandbox: 'own', session: 'own', drives: true },
  collaborator: { sandbox: 'work', session: 'work', drives: true },
  viewer: { sandbox: 'see', session: 'see', drives: false },
  // One session was shared with them, and the sandbox is not there for them.
  'session guest': { sandbox: undefined, session: 'watch', drives: false },
  stranger: { sandbox: undefined, session: undefined, drives: false },
  revoked: { sandbox: undefined, session: undefined, drives: false },
  none: { sandbox: undefined, session: undefined, drives: false },
} as const
export type PersonKind = keyof typeof PEOPLE

/** What credentials are good for. */
export const CREDENTIALS = {
  'all scopes': ['connect', 'exec', 'admin'],
  'connect only': ['connect'],
  'all but connect': ['exec', 'admin'],
} as const
export type CredentialKind = keyof typeof CREDENTIALS

type Scope = 'connect' | 'exec' | 'admin' | 'operator'

/** What a request names, and what whoever may not know of it is told. */
export const MISSING = {
  sandbox: 'sandbox_not_found',
  session: 'session_not_found',
  grant: 'not_found',
} as const

/** What a verb asks for, where that is not all in its route's policy. */
export interface Demand {
  readonly names?: keyof typeof MISSING
  /** More than the route asks of everybody. */
  readonly need?: 'see' | 'work' | 'own'
  readonly scope?: Scope
  /** Of who holds the grant, and nobody else's, not even the owner's. */
  readonly heldBy?: PersonKind
  /** Asks to hold the keyboard. */
  readonly drives?: boolean
}

const ORDER = ['watch', 'see', 'work', 'own']

/** What must come of a request: `allowed`, or the code of its refusal. Who asks, then what for, then where. */
export function expectedOf(
  policy: Exclude<Policy, 'public'>,
  { names = 'sandbox', need: extraNeed, scope: extraScope, heldBy, drives = false }: Demand,
  [person, credential]: readonly [PersonKind, CredentialKind],
): string {
  const scopes: readonly string[] = CREDENTIALS[credential]
  const need = extraNeed ?? policy.need
  if (person === 'none') return 'unauthorized'
  if (!scopes.includes('connect') || !scopes.includes(policy.scope)) return 'forbidden'
  if (extraScope !== undefined && !scopes.includes(extraScope)) return 'forbidden'
  if (heldBy !== undefined) return person === heldBy ? 'allowed' : MISSING.grant
  if (need === 'self') return 'allowed'
  const has = PEOPLE[person][names === 'session' ? 'session' : 'sandbox']
  if (has === undefined) return MISSING[names]
  if (ORDER.indexOf(has) < ORDER.indexOf(need)) return 'forbidden'
  // Whoever types into a process that is no template's runs what they like.
  return drives && !(PEOPLE[person].drives && scopes.includes('exec')) ? 'forbidden' : 'allowed'
}
