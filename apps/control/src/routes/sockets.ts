import { z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import { sandboxOfSession } from '@sandwire/internal-api'
import type { Context } from 'hono'
import { isSessionToken } from '../auth/session-token.ts'
import { attach, type AttachDependencies } from './attach.ts'
import type { AttachParameter } from './attach-query.ts'
import { type App, type AppEnv, callOf, identityOf } from './context.ts'
import { endpoint, type GuardOf } from './endpoint.ts'
import { sessionParams } from './schemas.ts'

const upgraded = {
  101: { description: 'A WebSocket that speaks `sandwire.v1` when it was offered, else the plain dialect' },
  426: { description: 'The request is good but no upgrade' },
}

/** For the document only: the query is decoded by `parseAttachQuery`, which knows repeated parameters and dialects. */
const DESCRIPTIONS = {
  sandbox: 'Id or name; a new name is made into a sandbox',
  create: '0: do not make one',
  session: 'Join this session, by its id or a token of it; starts and wakes nothing',
  template: 'Run this template of the operator instead of a command of your own',
  param: 'NAME=VALUE of the template, may be repeated',
  cmd: 'Command, for who may run their own; the shell when absent',
  arg: 'Argument, may be repeated',
  mode: 'pipe or pty',
  cwd: 'Folder in the workspace',
  cols: 'Columns of the terminal',
  rows: 'Rows of the terminal',
  createId: '32 hex digits; sent again, it starts no second process',
  role: 'driver, collaborator or viewer',
  take: '1: take the right to drive',
  keep: 'Seconds the session lives without a connection',
  overflow: 'block or trim',
  pin: '1: keep the sandbox awake while the process runs',
} as const satisfies Readonly<Record<AttachParameter | 'template' | 'param', string>>

function describeParameters(names: readonly (keyof typeof DESCRIPTIONS)[]) {
  const described = names.map((name) => {
    const description = DESCRIPTIONS[name]
    return [name, z.unknown().optional().openapi({ type: 'string', description })] as const
  })
  return z.looseObject(Object.fromEntries(described))
}

const attachParameters = describeParameters(Object.keys(DESCRIPTIONS) as (keyof typeof DESCRIPTIONS)[])
/** Of a session that exists. */
const joinParameters = describeParameters(['role', 'take', 'cols', 'rows'])

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
      request: { params: sessionParams, query: joinParameters },
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
