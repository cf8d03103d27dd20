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
 * there to help: whoever shared it would otherwise find them driving, only because nobody did at that moment.
 */
export function authorityOf(
  { authority, grant }: Pick<Caller, 'authority' | 'grant'>,
  { joins, query, maxRole }: Pick<AttachCall, 'joins' | 'query' | 'maxRole'>,
): Caller['authority'] {
  if (authority === 'control') return authority
  const asked = new URLSearchParams(query)
  const isSilent = !asked.has('role') && asked.get('take') !== '1'
  const usual: Role = grant !== undefined && joins !== undefined && isSilent ? 'collaborator' : 'driver'
  return leastOf([authority, maxRole ?? 'driver', usual])
}
