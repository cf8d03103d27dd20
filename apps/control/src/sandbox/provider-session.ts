import { SandwireError } from '@sandwire/protocol'
import type { ProviderTerminals, TerminalRequest, TerminalStart } from '../providers/provider.ts'
import { grantedRole } from './access.ts'
import type { AttachCall } from './call.ts'
import type { Caller } from './sandboxd-client.ts'
import { MODE_HEADER, SESSION_HEADER } from './session-names.ts'

/** Interval of heartbeats to a client, unless the operator sets one. */
const DEFAULT_HEARTBEAT_SECONDS = 30

/** True when the provider runs the terminal of this attach. Throws for other clients, whose protocol its terminals do not speak. */
export function runsInTerminal(terminals: ProviderTerminals, { joins, compat }: AttachCall): boolean {
  const isKnown = joins !== undefined && terminals.has(joins)
  const isPty = compat?.kind === 'pty'
  if (isKnown && !isPty)
    throw new SandwireError('bad_request', 'Cannot attach to this terminal: only clients of /ws/pty can')
  return isPty && (isKnown || joins === undefined)
}

/** Opens it; the response names the session, as that of sandboxd does. */
export async function openTerminal(
  terminals: ProviderTerminals,
  request: TerminalRequest,
): Promise<Response> {
  const { webSocket } = await terminals.open(request)
  const headers = { [SESSION_HEADER]: request.session, [MODE_HEADER]: 'pty' }
  return new Response(null, { status: 101, webSocket, headers })
}

function startOf({ query, template, env = {} }: AttachCall, sandboxEnv: TerminalStart['env']): TerminalStart {
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
  }
}

/** An authorized attach of a compat client, for a provider that runs terminals itself. `sandboxEnv`: that of all processes of the sandbox. */
export function terminalRequestOf(
  call: AttachCall,
  caller: Caller,
  sandboxEnv: TerminalStart['env'],
): TerminalRequest {
  const { joins, session = joins ?? '', sessionName = session, compat } = call
  const { authority, templateRole } = grantedRole(caller, call)
  const { identity, name, login, grant, requestId } = caller
  return {
    session: joins ?? session,
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
