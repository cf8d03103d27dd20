import { type Role, SandwireError } from '@sandwire/protocol'
import { type Caller, roleOf } from '../caller.ts'

/** Roles that each may be narrowed to. */
const WITHIN: Readonly<Record<Role, readonly Role[]>> = {
  driver: ['driver', 'collaborator', 'viewer'],
  collaborator: ['collaborator', 'viewer'],
  viewer: ['viewer'],
}

/** The most that a connection may be: what its caller may be, or less when the URL asks for less. */
export function narrowRole(caller: Caller, asked: Role | undefined, isTemplate = false): Role {
  const own = roleOf(caller, isTemplate)
  if (own === undefined) throw new SandwireError('forbidden', `Cannot attach as ${caller.authority}`)
  if (asked === undefined || WITHIN[own].includes(asked)) return asked ?? own
  throw new SandwireError('forbidden', `Cannot become ${asked}: this connection may be ${own}`)
}
