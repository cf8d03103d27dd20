import { z } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import type { AccountIds } from '../auth/account-id.ts'
import { CLEAR_COOKIE } from '../auth/browser-sign-in.ts'
import { isGuestLogin, SCOPES } from '../auth/identity.ts'
import { LOCAL_ACCOUNT } from '../auth/local-identity.ts'
import type { Config, IssuerConfig } from '../config.ts'
import { unwrap } from '../outcome.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { type App, identityOf } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'

const issuerView = z
  .object({
    id: z.string(),
    name: z.string(),
    issuer: z.string(),
    clientId: z
      .string()
      .nullable()
      .openapi({ description: 'Null: its tokens are accepted, but this server has no client there.' }),
    requestScopes: z.array(z.string()).readonly(),
    requestParameters: z.record(z.string(), z.string()),
    bearer: z
      .enum(['access_token', 'id_token'])
      .openapi({ description: 'The token to send as bearer token.' }),
    endpoints: z
      .object({
        authorization: z.string(),
        token: z.string(),
        deviceAuthorization: z.string(),
        revocation: z.string(),
      })
      .partial()
      .openapi({ description: 'Replace the endpoints of its metadata.' }),
  })
  .openapi('Issuer')
const authView = z
  .object({
    mode: z.enum(['local', 'open']),
    local: z.boolean().openapi({ description: 'The local token of this machine is accepted.' }),
    issuers: z.array(issuerView),
  })
  .openapi('Auth')
/** Name of an account's first sandbox, unless the server has only one. */
const FIRST_SANDBOX = 'dev'

const whoamiView = z
  .object({
    account: z.string(),
    name: z.string(),
    scopes: z.array(z.enum(SCOPES)).readonly(),
    via: z.enum(['bearer', 'cookie', 'ticket']),
    guest: z.boolean().openapi({ description: 'Has access only to what was shared, without an account.' }),
    expiresMs: z.int().nullable().openapi({ description: 'When the credential expires; null: never.' }),
    firstSandbox: z
      .string()
      .openapi({ description: 'Name for the first sandbox; where there is only one, its name.' }),
  })
  .openapi('Whoami')
const signInList = z
  .object({
    signIns: z.array(
      z.object({
        login: z.string(),
        /** Id of the issuer; null: a sign-in link of the host. */
        issuer: z.string().nullable(),
        name: z.string(),
        scopes: z.array(z.string()),
        createdMs: z.number(),
        expiresMs: z.number(),
        /** The sign-in of this request. */
        current: z.boolean(),
      }),
    ),
  })
  .openapi('SignIns')
const deletion = z
  .object({
    /** Sandboxes that are still being destroyed. */
    left: z.number(),
  })
  .openapi('Deletion')
const confirmation = body(z.strictObject({ confirm: z.string().min(1).max(256) }))

export interface AccountDependencies {
  readonly lookup: SandboxLookup
  readonly accounts: Pick<AccountIds, 'isMinted'>
  readonly config: Config
}

/** The issuer's settings that a client needs to sign in; none of them is secret. */
function toIssuerView(config: IssuerConfig): z.infer<typeof issuerView> {
  const { id, name, issuer, clientId = null, requestScopes, requestParameters = {}, bearer } = config
  const { jwks: _, ...endpoints } = config.endpoints
  return {
    id,
    name,
    issuer,
    clientId,
    requestScopes,
    requestParameters: { ...requestParameters },
    bearer,
    endpoints,
  }
}

/** Deletes an account with its sandboxes; returns how many of them are still being destroyed. */
async function deleteAccount(
  lookup: SandboxLookup,
  account: string,
  confirm: string,
  names: readonly string[],
): Promise<number> {
  if (account === LOCAL_ACCOUNT)
    throw new SandwireError('forbidden', "Cannot delete the account of the machine's owner")
  if (!names.includes(confirm))
    throw new SandwireError('bad_request', 'Cannot use "confirm": expected the name or id of the account')
  return unwrap(await lookup.account(account).deleteAccount(account))
}

function addIdentityRoutes(app: App, guardOf: GuardOf, { config, lookup }: AccountDependencies): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/auth',
      responses: { 200: json(authView, 'How to sign in') },
    }),
    (context) => {
      const { mode, localTokenSha256, issuers } = config
      const local = localTokenSha256 !== undefined
      return context.json({ mode, local, issuers: issuers.map(toIssuerView) }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/whoami',
      responses: { 200: json(whoamiView, 'The caller') },
    }),
    (context) => {
      const { account, name, scopes, via: kind, login, expiresMs = null } = identityOf(context)
      const via = kind === 'service cookie' ? 'cookie' : kind
      const firstSandbox = config.hasOneSandbox ? config.defaultName : FIRST_SANDBOX
      const guest = isGuestLogin(login)
      return context.json({ account, name, scopes, via, guest, expiresMs, firstSandbox }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/account/sign-ins',
      responses: { 200: json(signInList, 'Signed-in browsers, oldest first') },
    }),
    async (context) => {
      const identity = identityOf(context)
      const all = unwrap(await lookup.account(identity.account).signIns())
      const signIns = all.map(({ login, issuer, name, scopes, createdMs, expiresMs }) => ({
        login,
        issuer,
        name,
        scopes: [...scopes],
        createdMs,
        expiresMs,
        current: login === identity.login,
      }))
      return context.json({ signIns }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/account/sign-ins/{login}',
      request: { params: z.object({ login: z.string().regex(/^[\w-]{1,64}$/) }) },
      responses: { 204: { description: 'The browser is signed out' } },
    }),
    async (context) => {
      const { login } = context.req.valid('param')
      const ended = unwrap(await lookup.account(identityOf(context).account).signOut(login))
      if (ended === null) throw new SandwireError('not_found', 'No such sign-in')
      return context.body(null, 204)
    },
  )
}

/** Identity, sign-ins and deletion of accounts. */
export function addAccountRoutes(app: App, guardOf: GuardOf, deps: AccountDependencies): void {
  const { lookup, accounts } = deps
  addIdentityRoutes(app, guardOf, deps)

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/account',
      request: { body: confirmation },
      responses: { 200: json(deletion, 'The account is deleted and its credentials are revoked') },
    }),
    async (context) => {
      const { account, name } = identityOf(context)
      const { confirm } = context.req.valid('json')
      const left = await deleteAccount(lookup, account, confirm, [account, name])
      context.header('set-cookie', CLEAR_COOKIE)
      return context.json({ left }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/accounts/{account}',
      request: { params: z.object({ account: z.string().max(128) }), body: confirmation },
      responses: { 200: json(deletion, 'The account is deleted and its credentials are revoked') },
    }),
    async (context) => {
      const { account } = context.req.valid('param')
      if (!(await accounts.isMinted(account))) throw new SandwireError('not_found', 'No account has this id')
      const left = await deleteAccount(lookup, account, context.req.valid('json').confirm, [account])
      return context.json({ left }, 200)
    },
  )
}
