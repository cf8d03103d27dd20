import { type Role, ROLES } from '@sandwire/protocol'
import type { AttachCall } from './call.ts'
import type { Caller } from './sandboxd-client.ts'

/** The least of roles. */
function leastOf(roles: readonly Role[]): Role {
  // They are in order, from least to most.
  return ROLES[Math.min(...roles.map((role) => ROLES.indexOf(role)))] ?? 'viewer'
}

/**
 * What a connection may be: no more than the access and the credential allow. A guest in a session who names no role is
 * there to help: whoever shared it would otherwise find them driving, only because nobody did at that moment. That is
 * for sandboxd to apply, since a guest who comes back to what they drove asks for it the same way, and drives on. Typing
 * into a shell is running commands: a credential that is not good for those watches, but where a template runs.
 */
export function roleAtTheDoor(
  { authority, grant }: Pick<Caller, 'authority' | 'grant'>,
  { joins, query, maxRole, scopes }: Pick<AttachCall, 'joins' | 'query' | 'maxRole' | 'scopes'>,
): Pick<Caller, 'authority' | 'usualRole' | 'templateRole'> {
  if (authority === 'control') return { authority }
  const asked = new URLSearchParams(query)
  const isSilent = !asked.has('role') && asked.get('take') !== '1'
  const isGuest = grant !== undefined && joins !== undefined
  const most = leastOf([authority, maxRole ?? 'driver'])
  const onlyWatches = joins !== undefined && !scopes.includes('exec')
  return {
    ...(onlyWatches ? { authority: 'viewer', templateRole: most } : { authority: most }),
    ...(isGuest && isSilent ? { usualRole: 'collaborator' } : {}),
  }
}
