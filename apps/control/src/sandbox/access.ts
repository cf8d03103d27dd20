import { type Role, SandwireError } from '@sandwire/protocol'
import { noSuchSandbox } from './missing.ts'

/**
 * What an operation asks of its caller, from least to most. `watch`: see one session and its stream. `see`: see the sandbox
 * and all its sessions. `work`: run processes, so read and write every file. `own`: share, stop, destroy.
 */
export const NEEDS = ['watch', 'see', 'work', 'own'] as const
export type Need = (typeof NEEDS)[number]

/** A stored right of one account on a sandbox, or on one session of it. */
export interface Grant {
  readonly id: string
  /** Whose it is. */
  readonly account: string
  /** Absent: the whole sandbox. */
  readonly session?: string
  readonly role: 'collaborator' | 'viewer'
  readonly expiresMs: number
}

/** What a caller may do here, and what that hangs on. */
export interface Access {
  readonly need: Need
  /** The most it may be in a session. */
  readonly authority: Role
  /** Grant that allows it; absent for the owner. */
  readonly grant?: string
}

/** How somebody is in a sandbox, as they are told. */
export type Standing = 'owner' | Grant['role']

export function standingOf({ grant, authority }: Access): Standing {
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

/** What several grants allow together: as much as the widest, and in a session as much as the strongest, which it hangs on. */
function combine(left: Access, right: Access): Access {
  const isStronger =
    left.authority === right.authority ? rank(right) > rank(left) : right.authority === 'driver'
  const strongest = isStronger ? right : left
  return { ...strongest, need: rank(right) > rank(left) ? right.need : left.need }
}

/** The most that an account may do in a sandbox, or with one session of it; undefined for strangers. */
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

/** The access, when it is enough. A stranger is told that there is nothing; somebody who knows better, that it is forbidden. */
export function requireAccess(access: Access | undefined, need: Need): Access {
  if (access === undefined) throw noSuchSandbox()
  if (NEEDS.indexOf(access.need) < NEEDS.indexOf(need)) {
    // A session is not theirs to end or pin, though they may type into it.
    const isHelper = need === 'work' && access.authority === 'driver'
    throw new SandwireError('forbidden', REFUSALS[isHelper ? 'see' : need])
  }
  return access
}

const REFUSALS: Readonly<Record<Need, string>> = {
  watch: 'Cannot do this: it was not shared with you',
  see: 'Cannot do this: one session was shared with you, not the sandbox',
  work: 'Cannot do this: it was shared with you to watch',
  own: 'Cannot do this: only the owner may',
}
