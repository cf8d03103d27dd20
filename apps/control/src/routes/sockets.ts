import { z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import { sandboxOfSession } from '@sandwire/internal'
import type { Context } from 'hono'
import { isSessionToken } from '../auth/session-token.ts'
import { attach, type AttachDependencies } from './attach.ts'
import { type App, type AppEnv, callOf, identityOf } from './context.ts'
import { endpoint, type GuardOf } from './endpoint.ts'
import { sessionParams } from './schemas.ts'

const upgraded = {
  101: { description: 'A WebSocket that speaks `sandwire.v1` when it was offered, else the plain dialect' },
  426: { description: 'The request is good but no upgrade' },
}

/** For the document only: the query is decoded by `parseAttachQuery`, which knows repeated parameters and dialects. */
const described = (description: string) => z.unknown().optional().openapi({ type: 'string', description })
const attachParameters = z.looseObject({
  sandbox: described('Id or name; a new name is made into a sandbox'),
  create: described('0: do not make one'),
  session: described('Join this session, by its id or a token of it; starts and wakes nothing'),
  template: described('Run this template of the operator instead of a command of your own'),
  param: described('NAME=VALUE of the template, may be repeated'),
  cmd: described('Command, for who may run their own; the shell when absent'),
  arg: described('Argument, may be repeated'),
  mode: described('pipe or pty'),
  cwd: described('Folder in the workspace'),
  cols: described('Columns of the terminal'),
  rows: described('Rows of the terminal'),
  createId: described('32 hex digits; sent again, it starts no second process'),
  role: described('driver, collaborator or viewer'),
  take: described('1: take the right to drive'),
  keep: described('Seconds the session lives without a connection'),
  overflow: described('block or trim'),
})

/** Who attaches, and what their ticket is for when they have one. */
function callerOf(context: Context<AppEnv>, query: URLSearchParams) {
  // As its object calls it, so that a refusal is written down once, whoever decides it.
  context.set('action', query.has('session') ? 'session.join' : 'session.start')
  return { call: callOf(context), ticket: identityOf(context).ticket }
}

/** An id, or a token of one. */
function isSessionName(text: string): boolean {
  return isSessionToken(text) || sandboxOfSession(text) !== undefined
}

/** The routes that become WebSockets. */
export function addSocketRoutes(app: App, guardOf: GuardOf, deps: AttachDependencies): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/attach',
      request: { query: attachParameters },
      responses: upgraded,
    }),
    (context) => {
      const query = new URL(context.req.url).searchParams
      return attach(context.req.raw, query, callerOf(context, query), deps)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/terminal/{session}',
      request: { params: sessionParams },
      responses: upgraded,
    }),
    (context) => {
      const { session } = context.req.valid('param')
      const query = new URL(context.req.url).searchParams
      if (query.has('session') || query.has('sandbox') || !isSessionName(session))
        throw new SandwireError('bad_request', 'Cannot use the session id: it is not spelled like one')
      query.append('session', session)
      return attach(context.req.raw, query, callerOf(context, query), deps)
    },
  )
}
