import { SandwireError } from '@sandwire/protocol'
import type { ProviderSessions, SessionRequest, SessionStart } from '../providers/provider.ts'
import { grantedRole } from './access.ts'
import type { AttachCall } from './call.ts'
import { noSuchSession } from './not-found.ts'
import type { Caller } from './sandboxd-client.ts'
import { MODE_HEADER, SESSION_HEADER } from './session-names.ts'

/** Interval of heartbeats to a client, unless the operator sets one. */
const DEFAULT_HEARTBEAT_SECONDS = 30

/** True when the provider runs the session of this attach. Throws for other clients, whose protocol its sessions do not speak. */
export function runsInProvider(sessions: ProviderSessions, { joins, compat }: AttachCall): boolean {
  const isKnown = joins !== undefined && sessions.has(joins)
  const kind = compat?.kind
  if (kind === 'claude' && joins !== undefined && !isKnown) throw noSuchSession()
  const isCompat = kind === 'pty' || kind === 'claude'
  if (isKnown && !isCompat)
    throw new SandwireError(
      'bad_request',
      'Cannot attach to this session: only clients of /ws/pty and /ws/claude-stream can',
    )
  return isCompat && (isKnown || joins === undefined)
}

/** Opens it; the response names the session, as that of sandboxd does. */
export async function openProviderSession(
  sessions: ProviderSessions,
  request: SessionRequest,
): Promise<Response> {
  const { webSocket } = await sessions.open(request)
  const headers = { [SESSION_HEADER]: request.session, [MODE_HEADER]: request.kind }
  return new Response(null, { status: 101, webSocket, headers })
}

function startOf(
  { query, template, env = {}, compat }: AttachCall,
  sandboxEnv: SessionStart['env'],
): SessionStart {
  const values = new URLSearchParams(query)
  const [cmd, cwd] = [values.get('cmd'), values.get('cwd')]
  const seconds = (name: string): number => Number(values.get(name) ?? 0)
  return {
    args: values.getAll('arg'),
    env: { ...sandboxEnv, ...env },
    keepSeconds: seconds('keep'),
    lifetimeSeconds: seconds('lifetime'),
    idleSeconds: seconds('idle'),
    ...(template !== undefined && { template }),
    ...(cmd !== null && { cmd }),
    ...(cwd !== null && { cwd }),
    ...(compat?.kind === 'claude' && { claude: compat.options }),
  }
}

/** An authorized attach of a compat client, for a provider that runs its sessions itself. `sandboxEnv`: that of all processes of the sandbox. */
export function sessionRequestOf(
  call: AttachCall,
  caller: Caller,
  sandboxEnv: SessionStart['env'],
): SessionRequest {
  const { joins, session = joins ?? '', sessionName = session, compat } = call
  const { authority, templateRole } = grantedRole(caller, call)
  const { identity, name, login, grant, requestId } = caller
  return {
    session: joins ?? session,
    kind: compat?.kind === 'claude' ? 'claude' : 'pty',
    name: sessionName,
    userName: name ?? '',
    authorization: { identity, ...(login !== undefined && { login }), ...(grant !== undefined && { grant }) },
    authority: authority === 'control' ? 'driver' : authority,
    ...(templateRole !== undefined && { templateRole }),
    heartbeatSeconds: compat?.heartbeatSeconds ?? DEFAULT_HEARTBEAT_SECONDS,
    requestId,
    ...(joins === undefined && { start: startOf(call, sandboxEnv) }),
  }
}
