import { z } from '@hono/zod-openapi'
import { ENVELOPE_SUBPROTOCOL, SandwireError } from '@sandwire/protocol'
import type { TicketBinding } from '../auth/authenticator.ts'
import type { FilledTemplate } from '../commands/fill-template.ts'
import { fillProvider, providerRefusal } from '../commands/pty-providers.ts'
import { readUpgrade } from '../http/upgrade.ts'
import type { AttachCall, PtyAsk, SandboxCall } from '../sandbox/call.ts'
import { noSuchSession } from '../sandbox/missing.ts'
import { type AttachDependencies, joinIn, startIn } from './attach.ts'
import { parseAttachQuery } from './attach-query.ts'
import { type App, callOf, identityOf } from './context.ts'
import { endpoint, type GuardOf } from './endpoint.ts'
import { parsePtyQuery, type PtyQuery } from './pty-query.ts'

/** For the document only: the query is decoded by `parsePtyQuery`. */
const described = (description: string) => z.unknown().optional().openapi({ type: 'string', description })
const parameters = z.looseObject({
  session_id: described('The session to come back to: as it was called before, or as the client calls it'),
  provider: described('What to run: shell, or a template of the operator'),
  session_name: described('For people; not used'),
  resume: described('1: only a session that is there'),
  force_new: described('1: always a new session'),
  sandbox: described('Id or name; without it, the default sandbox'),
})

/** The subprotocols that an upgrade offers, without tickets. */
function offersOf(request: Request): readonly string[] {
  return (request.headers.get('sec-websocket-protocol') ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

/** Throws `version_unsupported` where the client would wait for an answer that it does not get. */
function checkOffers(offers: readonly string[]): void {
  if (offers.length === 0 || offers.includes(ENVELOPE_SUBPROTOCOL)) return
  throw new SandwireError(
    'version_unsupported',
    `Cannot speak this subprotocol: offer "${ENVELOPE_SUBPROTOCOL}", or none`,
  )
}

/** The query that starts a terminal. Nothing of it is the client's: a command is a template's, or there is none. */
function startQuery(filled: FilledTemplate | undefined): string {
  const query = new URLSearchParams({ createId: crypto.randomUUID().replaceAll('-', '') })
  if (filled !== undefined) {
    query.append('cmd', filled.cmd)
    for (const arg of filled.args) query.append('arg', arg)
    if (filled.cwd !== undefined) query.append('cwd', filled.cwd)
  }
  return parseAttachQuery(query, 'v1').query
}

/** What the sandbox's object is asked. */
function toCall(
  { provider, which, alias }: PtyQuery,
  call: SandboxCall,
  ticket: TicketBinding | undefined,
  { commands }: AttachDependencies,
): AttachCall & { readonly pty: PtyAsk } {
  const filled = fillProvider(provider, commands)
  const refusal = providerRefusal(filled, call, commands)
  return {
    ...call,
    dialect: 'v1',
    isIdempotent: true,
    query: startQuery(filled),
    ...(ticket === undefined ? {} : { maxRole: ticket.role }),
    ...(filled === undefined
      ? {}
      : {
          template: filled.template,
          env: filled.env,
        }),
    pty: {
      which,
      ...(alias === undefined ? {} : { alias }),
      ...(refusal === undefined
        ? {}
        : {
            startRefusal: {
              code: refusal.code,
              message: refusal.message,
            },
          }),
    },
  }
}

/** Opens the terminal that a query means, in the sandbox that it names or the default one. */
async function openPty(
  query: PtyQuery,
  call: AttachCall & { readonly pty: PtyAsk },
  ticket: TicketBinding | undefined,
  deps: AttachDependencies,
): Promise<Response> {
  const { session, sandbox, which, alias } = query
  const { startRefusal } = call.pty
  if (session !== undefined) {
    const id = await deps.sessionNames.resolve(session, call.identity)
    return joinIn(
      { kind: 'join', session: id, ...(sandbox === undefined ? {} : { sandbox }) },
      call,
      ticket,
      deps,
    )
  }
  if (which === 'resume' && alias === undefined) throw noSuchSession()
  // With a name of its own it may mean a session that is there, which its sandbox knows.
  const startsSurely = alias === undefined || which === 'new'
  if (startsSurely && startRefusal !== undefined)
    throw new SandwireError(startRefusal.code, startRefusal.message)
  return startIn({ kind: 'start', sandbox, mayCreate: which !== 'resume' }, call, ticket, deps)
}

/** Where a session is asked for, a sandbox that is not there or does not run has none. */
function asMissing(caught: unknown): unknown {
  const { code } = SandwireError.from(caught)
  return code === 'sandbox_not_found' || code === 'sandbox_stopped' ? noSuchSession() : caught
}

/** `/ws/pty`: a terminal in the envelope that existing front ends speak, which sandboxd translates. */
export function addPtyRoute(app: App, guardOf: GuardOf, deps: AttachDependencies): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/ws/pty',
      request: { query: parameters },
      responses: {
        101: { description: 'A WebSocket that speaks JSON messages about one terminal' },
        426: { description: 'The request is good but no upgrade' },
      },
    }),
    async (context) => {
      const request = context.req.raw
      const { isUpgrade, isWellFormed } = readUpgrade(request)
      if (isUpgrade && !isWellFormed)
        throw new SandwireError('bad_request', 'Cannot upgrade: the WebSocket handshake is malformed')
      const offers = offersOf(request)
      if (isUpgrade) checkOffers(offers)
      const query = parsePtyQuery(new URL(request.url).searchParams)
      const joins = query.session !== undefined || query.which === 'resume'
      context.set('action', joins ? 'session.join' : 'session.start')
      context.set('target', { ...context.get('target'), session: query.session })
      const asked = callOf(context)
      if (isUpgrade) await deps.limits.admit(asked)
      const { ticket } = identityOf(context)
      const call = toCall(query, asked, ticket, deps)
      if (!isUpgrade) throw new SandwireError('upgrade_required', 'Cannot attach without a WebSocket upgrade')
      try {
        const opened = await openPty(query, call, ticket, deps)
        if (offers.length > 0) opened.headers.set('sec-websocket-protocol', ENVELOPE_SUBPROTOCOL)
        return opened
      } catch (caught) {
        throw joins ? asMissing(caught) : caught
      }
    },
  )
}
