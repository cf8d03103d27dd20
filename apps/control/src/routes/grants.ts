import { SandwireError } from '@sandwire/protocol'
import type { AccountIds } from '../auth/account-id.ts'
import { mintSecret, sha256Hex } from '../bytes.ts'
import type { SourceSettings } from '../http/source-check.ts'
import { type Outcome, unwrap } from '../outcome.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { type GrantRecord, noSuchGrant, noticeOf, sandboxOfGrant } from '../sandbox/grants.ts'
import type { IdMint } from '../sandbox/sandbox-id.ts'
import { parseSandboxRef } from '../sandbox/sandbox-id.ts'
import { type App, callOf } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'
import { findSandbox, unwrapSession } from './find-sandbox.ts'
import {
  createGrantBody,
  grantList,
  grantMade,
  grantParams,
  grantsQuery,
  revokeQuery,
} from './sharing-schemas.ts'

export interface GrantDependencies {
  readonly lookup: SandboxLookup
  readonly mint: IdMint
  readonly accounts: AccountIds
  readonly source: SourceSettings
  /** Share links can be redeemed without an account. */
  readonly hasGuests: boolean
}

/** The origin of share links: that of guests, if there is one; else the public origin that the owner uses; else the first public one. */
function originOf(headers: Headers, { source, hasGuests }: GrantDependencies): string {
  const { publicOrigins, privateOrigins } = source
  if (hasGuests && privateOrigins !== undefined) return privateOrigins.guests
  const host = headers.get('host')?.toLowerCase()
  const isUsed = (origin: string): boolean =>
    new URL(origin).host === host && origin !== privateOrigins?.owner && origin !== privateOrigins?.guests
  const origin = publicOrigins.find(isUsed) ?? publicOrigins[0]
  if (origin === undefined)
    throw new SandwireError('internal', 'Cannot create a share link: no public origin is configured')
  return origin
}

/** A grant as the sandbox's owner sees it. */
function toGrantView({ id, session, role, label, createdMs, expiresMs, holder }: GrantRecord) {
  return {
    grant: id,
    session: session ?? null,
    role,
    label,
    createdMs,
    expiresMs,
    state: holder === undefined ? ('open' as const) : ('held' as const),
    account: holder?.account ?? null,
    name: holder?.name ?? null,
  }
}

/** The value of an outcome about a grant. A grant of another account's sandbox is reported like one that does not exist. */
function unwrapGrant<T>(outcome: Outcome<T>): T {
  if (!outcome.ok && outcome.code === 'sandbox_not_found') throw noSuchGrant()
  return unwrap(outcome)
}

/** `/api/grants`: creating, listing and revoking grants of one's own sandboxes. */
export function addGrantRoutes(app: App, guardOf: GuardOf, deps: GrantDependencies): void {
  const { lookup, mint, accounts } = deps

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/grants',
      request: { body: body(createGrantBody) },
      responses: { 201: json(grantMade, 'The grant, with a share link for its first user') },
    }),
    async (context) => {
      const call = callOf(context)
      const { sandbox: named, session, role, expiresSeconds, label, account } = context.req.valid('json')
      if (account !== undefined && !(await accounts.isMinted(account)))
        throw new SandwireError('bad_request', 'Cannot use "account": expected the id of an account')
      const sandbox = await findSandbox(lookup, call.identity, { sandbox: named, session })
      const secret = mintSecret()
      const outcome = await lookup.sandbox(sandbox).grant(call, {
        role,
        label,
        lifeMs: expiresSeconds * 1e3,
        ...(session === undefined ? {} : { session }),
        ...(account === undefined ? { linkHash: await sha256Hex(secret) } : { account }),
      })
      const { id, expiresMs } = session === undefined ? unwrap(outcome) : unwrapSession(outcome)
      const notice = noticeOf(role)
      const link = `${originOf(context.req.raw.headers, deps)}/join#${id}.${secret}`
      return context.json(
        {
          grant: id,
          sandbox,
          session: session ?? null,
          role,
          expiresMs,
          ...(account === undefined ? { link } : {}),
          ...(notice === undefined ? {} : { notice }),
        },
        201,
      )
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/grants',
      request: { query: grantsQuery },
      responses: { 200: json(grantList, 'The grants of a sandbox, oldest first') },
    }),
    async (context) => {
      const call = callOf(context)
      const ref = parseSandboxRef(context.req.valid('query').sandbox)
      const sandbox = await lookup.resolve(call.identity, ref)
      const grants = unwrap(await lookup.sandbox(sandbox).grants(call))
      return context.json({ sandbox, grants: grants.map(toGrantView) }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/grants/{grant}',
      request: { params: grantParams, query: revokeQuery },
      responses: { 204: { description: 'The grant is revoked and its connections are being closed' } },
    }),
    async (context) => {
      const { grant } = context.req.valid('param')
      const sandbox = sandboxOfGrant(grant)
      if (sandbox === undefined || !(await mint.isMinted(sandbox))) throw noSuchGrant()
      const endsSessions = context.req.valid('query').endSessions === '1'
      unwrapGrant(await lookup.sandbox(sandbox).revokeGrant(callOf(context), grant, endsSessions))
      return context.body(null, 204)
    },
  )
}
