import { SandwireError } from '@sandwire/protocol'
import type { Env } from '../env.ts'
import { unwrap } from '../outcome.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import { noSuchSandbox } from '../sandbox/not-found.ts'
import { ownerCall } from './agent-sandbox.ts'

/** What a caller needs to do something to a run or a conversation. `work`: write access to its sandbox, not to it alone. */
export type AgentNeed = 'watch' | 'steer' | 'work' | 'own'

/** A run or a conversation. */
interface Owned {
  readonly id: string
  readonly owner: string
  readonly ownerName: string
  readonly sandbox: string
}

/**
 * Throws `notFound` for callers without any access. Callers have that of the sandbox, or a grant on the id: the agent works with
 * every right there, so its owner also loses it with the access to the sandbox. Without a sandbox, only the owner has access.
 */
export async function authorizeAgent(
  env: Pick<Env, 'SANDBOX'>,
  { id, owner, sandbox }: Owned,
  call: SandboxCall,
  { need, notFound }: { readonly need: AgentNeed; readonly notFound: () => SandwireError },
): Promise<void> {
  // A terminal needs no more than `connect` to watch.
  if (need !== 'watch' && !call.scopes.includes('exec'))
    throw new SandwireError('forbidden', 'The credential does not have the scope "exec"')
  const isOwner = call.identity === owner
  // Can always be deleted.
  if (isOwner && need === 'own') return
  const outcome = await env.SANDBOX.get(env.SANDBOX.idFromName(sandbox)).accessToRun(call, id)
  if (!outcome.ok && outcome.code === 'sandbox_not_found') throw notFound()
  if (isOwner && !outcome.ok && outcome.code === 'sandbox_destroying') return
  const access = unwrap(outcome)
  if (access === null) {
    if (isOwner) return
    throw notFound()
  }
  if (need === 'steer' && access.authority === 'viewer')
    throw new SandwireError('forbidden', 'Cannot do this: you are a viewer')
  if (need === 'work' && access.need !== 'work' && access.need !== 'own')
    throw new SandwireError('forbidden', 'Cannot do this: you may not write files of its sandbox')
  if (need === 'own' && access.need !== 'own')
    throw new SandwireError('forbidden', 'Cannot do this: only the owner may')
}

/**
 * Throws unless a caller may restore the files of the sandbox: only the sandbox's owner, because that ends everything in it. Access to the
 * run or conversation alone is not enough.
 */
export async function authorizeRestore(
  env: Pick<Env, 'SANDBOX'>,
  { id, owner, sandbox }: Owned,
  call: SandboxCall,
  notFound: () => SandwireError,
): Promise<void> {
  await authorizeAgent(env, { id, owner, ownerName: '', sandbox }, call, { need: 'watch', notFound })
  const access = unwrap(await env.SANDBOX.get(env.SANDBOX.idFromName(sandbox)).accessToRun(call, id))
  if (access === null)
    throw new SandwireError('conflict', 'Cannot restore the files: there is no sandbox yet')
  if (access.need !== 'own')
    throw new SandwireError('forbidden', 'Cannot do this: only the owner of the sandbox may')
}

/** True when the agent must end, because its owner lost the access to the sandbox that it needs. */
export async function hasLostAccess(env: Pick<Env, 'SANDBOX'>, owned: Owned): Promise<boolean> {
  try {
    await authorizeAgent(env, owned, ownerCall(owned), { need: 'steer', notFound: noSuchSandbox })
    return false
  } catch (error) {
    // If the sandbox does not respond, the request is repeated.
    return ['sandbox_not_found', 'forbidden'].includes(SandwireError.from(error).code)
  }
}

/** Records an authorized request in the owner's audit, before it has any effect. */
export async function auditAgentCall(
  env: Pick<Env, 'ACCOUNT'>,
  { id, owner, sandbox }: Owned,
  call: SandboxCall,
  nowMs: number,
): Promise<void> {
  const { identity, name, address, requestId, login, action } = call
  if (action === undefined) return
  const entry = {
    id: `${requestId}.${action}`,
    atMs: nowMs,
    actor: identity,
    actorName: name,
    action,
    sandbox,
    session: id,
    address,
    requestId,
    outcome: 'allowed' as const,
    ...(login === undefined ? {} : { login }),
  }
  unwrap(await env.ACCOUNT.get(env.ACCOUNT.idFromName(owner)).recordAudit(owner, [entry]))
}
