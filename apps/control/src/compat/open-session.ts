import { SandwireError } from '@sandwire/protocol'
import type { TicketBinding } from '../auth/identity.ts'
import type { SessionKind } from '../auth/session-token.ts'
import type { FilledTemplate } from '../commands/command-policy.ts'
import { type AttachDependencies, joinSession, startSession } from '../routes/attach.ts'
import { parseAttachRequest } from '../routes/attach-query.ts'
import type { AttachCall, SandboxCall } from '../sandbox/call.ts'
import { noSuchSession } from '../sandbox/not-found.ts'
import type { SandboxRef } from '../sandbox/sandbox-id.ts'
import type { SessionSettings } from '../session-settings.ts'
import type { Selection } from './compat-sessions.ts'

/** The session that a client of the compat API names. */
export interface NamedSession {
  readonly sandbox: SandboxRef | undefined
  readonly select: Selection['select']
  readonly session?: string
  readonly alias?: string
}

type CompatCall = AttachCall & { readonly compat: Selection }

/** The attach query that starts a session. The client controls nothing in it. */
function startQuery(
  command: Pick<FilledTemplate, 'cmd' | 'args' | 'cwd'> | undefined,
  settings: SessionSettings,
): string {
  const query = new URLSearchParams({
    createId: crypto.randomUUID().replaceAll('-', ''),
    keep: String(settings.ptyReattachSeconds),
  })
  if (command !== undefined) {
    query.append('cmd', command.cmd)
    for (const arg of command.args) query.append('arg', arg)
    if (command.cwd !== undefined) query.append('cwd', command.cwd)
  }
  return parseAttachRequest(query, 'v1', settings).query
}

/** What a selection has for every kind of session. */
export function selectionOf(
  { select, alias }: NamedSession,
  { ptyHeartbeatSeconds }: SessionSettings,
  refusal: SandwireError | undefined,
) {
  return {
    select,
    heartbeatSeconds: ptyHeartbeatSeconds,
    ...(alias === undefined ? {} : { alias }),
    ...(refusal === undefined ? {} : { startRefusal: { code: refusal.code, message: refusal.message } }),
  }
}

/** The attach that joins or starts a session; `command`: what it runs, undefined for the shell. */
export function toAttachCall(
  call: SandboxCall,
  compat: Selection,
  command: Pick<FilledTemplate, 'cmd' | 'args' | 'cwd'> | undefined,
  ticket: TicketBinding | undefined,
  settings: SessionSettings,
): CompatCall {
  return {
    ...call,
    dialect: 'v1',
    isIdempotent: true,
    query: startQuery(command, settings),
    ...(ticket === undefined ? {} : { maxRole: ticket.role }),
    compat,
  }
}

/** Opens the requested session in the named sandbox or the default one. `kinds`: those that the client can use. */
export async function openSession(
  { session, sandbox, select, alias }: NamedSession,
  kinds: readonly SessionKind[],
  call: CompatCall,
  ticket: TicketBinding | undefined,
  deps: AttachDependencies,
): Promise<Response> {
  const { startRefusal } = call.compat
  if (session !== undefined) {
    const id = await deps.sessionNames.resolve(session, call.identity, kinds)
    const target = { kind: 'join' as const, session: id, ...(sandbox === undefined ? {} : { sandbox }) }
    return joinSession(target, call, ticket, deps)
  }
  if (select === 'resume' && alias === undefined) throw noSuchSession()
  // An alias may name an existing session, which only the sandbox's object knows.
  const isStart = alias === undefined || select === 'new'
  if (isStart && startRefusal !== undefined) throw new SandwireError(startRefusal.code, startRefusal.message)
  return startSession({ kind: 'start', sandbox, mayCreate: select !== 'resume' }, call, ticket, deps)
}
