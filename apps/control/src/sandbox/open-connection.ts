import type { Env } from '../env.ts'
import type { ProviderSessions } from '../providers/provider.ts'
import { openTui } from '../run/agent-tui.ts'
import type { AttachCall } from './call.ts'
import type { SandboxLifecycle } from './lifecycle.ts'
import { passThrough } from './pass-through.ts'
import type { Caller, SandboxdClient } from './sandboxd-client.ts'
import { SESSION_HEADER } from './session-names.ts'
import { openProviderSession, runsInProvider, sessionRequestOf } from './provider-session.ts'

interface Target {
  readonly address: string
  readonly sandboxd: SandboxdClient
  /** Sessions that the provider runs. */
  readonly execSessions: ProviderSessions | undefined
  readonly lifecycle: Pick<SandboxLifecycle, 'id' | 'env'>
}

/** Opens the connection of an authorized attach. Returns a 101 response, or throws. */
export async function openConnection(
  env: Env,
  { address, sandboxd, execSessions, lifecycle }: Target,
  caller: Caller,
  call: AttachCall,
): Promise<Response> {
  if (execSessions !== undefined && runsInProvider(execSessions, call))
    return openProviderSession(execSessions, sessionRequestOf(call, caller, lifecycle.env))
  await using tui = await openTui(env, call, lifecycle.id)
  const opened = await passThrough(address, sandboxd, { ...caller, ...tui?.caller }, call)
  // A repeated request leads to the session of the first one, which has a grant.
  if (opened.headers.get(SESSION_HEADER) === call.session) tui?.keep()
  return opened
}
