import { type Role, ROLES, SandwireError } from '@sandwire/protocol'
import type { AttachCall } from './call.ts'
import { noSuchSandbox } from './not-found.ts'
import type { Caller } from './sandboxd-client.ts'

/**
 * Access that an operation needs, from least to most. `watch`: one session and its output. `see`: the sandbox and all its
 * sessions. `work`: run processes, and so read and write every file. `own`: share, stop, destroy.
 */
export const NEEDS = ['watch', 'see', 'work', 'own'] as const
export type Need = (typeof NEEDS)[number]

/** A stored right of one account on a sandbox, or on one session of it. */
export interface Grant {
  readonly id: string
  /** Account that holds it. */
  readonly account: string
  /** Absent: the whole sandbox. */
  readonly session?: string
  readonly role: 'collaborator' | 'viewer'
  readonly expiresMs: number
}

/** What a caller may do in a sandbox, and what authorizes it. */
export interface Access {
  readonly need: Need
  /** Highest role in a session. */
  readonly authority: Role
  /** Grant that authorizes it; absent for the owner. */
  readonly grant?: string
}

/** Access as the API shows it. */
export type AccessName = 'owner' | Grant['role']

export function accessName({ grant, authority }: Access): AccessName {
  if (grant === undefined) return 'owner'
  return authority === 'driver' ? 'collaborator' : 'viewer'
}

const OWNER: Access = { need: 'own', authority: 'driver' }

function toAccess({ id, role, session }: Grant): Access {
  const isWhole = session === undefined
  return role === 'viewer'
    ? { need: isWhole ? 'see' : 'watch', authority: 'viewer', grant: id }
    : { need: isWhole ? 'work' : 'watch', authority: 'driver', grant: id }
}

function rank({ need }: Access): number {
  return NEEDS.indexOf(need)
}

/** Combines grants: the widest `need`, with the role and id of the grant that has the highest role. */
function combine(left: Access, right: Access): Access {
  const isStronger =
    left.authority === right.authority ? rank(right) > rank(left) : right.authority === 'driver'
  const strongest = isStronger ? right : left
  return { ...strongest, need: rank(right) > rank(left) ? right.need : left.need }
}

/** The access of an account to a sandbox, or to one session of it; undefined without any. */
export function accessOf(
  sandbox: { readonly owner: string; readonly grants: readonly Grant[] },
  account: string,
  at: { readonly session?: string | undefined; readonly nowMs: number },
): Access | undefined {
  if (account === sandbox.owner) return OWNER
  return sandbox.grants
    .filter((grant) => grant.account === account && grant.expiresMs > at.nowMs)
    .filter((grant) => grant.session === undefined || grant.session === at.session)
    .map(toAccess)
    .reduce<Access | undefined>((all, one) => (all === undefined ? one : combine(all, one)), undefined)
}

/** Returns the access if it is sufficient. Without any access the sandbox does not exist; with too little it is forbidden. */
export function requireAccess(access: Access | undefined, need: Need): Access {
  if (access === undefined) throw noSuchSandbox()
  if (NEEDS.indexOf(access.need) < NEEDS.indexOf(need)) {
    // A collaborator in one session may type into it, but not end or pin it.
    const isSessionCollaborator = need === 'work' && access.authority === 'driver'
    throw new SandwireError('forbidden', REFUSALS[isSessionCollaborator ? 'see' : need])
  }
  return access
}

const REFUSALS: Readonly<Record<Need, string>> = {
  watch: 'Cannot do this: it is not shared with you',
  see: 'Cannot do this: only one session is shared with you, not the sandbox',
  work: 'Cannot do this: you are a viewer',
  own: 'Cannot do this: only the owner may',
}

/** The lowest of these roles. */
function lowestOf(roles: readonly Role[]): Role {
  return ROLES[Math.min(...roles.map((role) => ROLES.indexOf(role)))] ?? 'viewer'
}

/**
 * The role of a connection: no higher than its access and its credential allow. A guest who requests no role becomes a
 * collaborator, so that joining does not make them the driver only because there is none; sandboxd applies that, because a
 * guest who resumes as driver requests no role either. Typing into a shell runs commands, so a credential without the scope
 * `exec` only views, except where a template runs.
 */
export function grantedRole(
  { authority, grant }: Pick<Caller, 'authority' | 'grant'>,
  { joins, query, maxRole, scopes }: Pick<AttachCall, 'joins' | 'query' | 'maxRole' | 'scopes'>,
): Pick<Caller, 'authority' | 'usualRole' | 'templateRole'> {
  if (authority === 'control') return { authority }
  const requested = new URLSearchParams(query)
  const requestsRole = requested.has('role') || requested.get('take') === '1'
  const isGuest = grant !== undefined && joins !== undefined
  const highest = lowestOf([authority, maxRole ?? 'driver'])
  const onlyViews = joins !== undefined && !scopes.includes('exec')
  return {
    ...(onlyViews ? { authority: 'viewer', templateRole: highest } : { authority: highest }),
    ...(isGuest && !requestsRole ? { usualRole: 'collaborator' } : {}),
  }
}
