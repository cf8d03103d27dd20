import { z } from '@hono/zod-openapi'
import { SCOPES } from '../auth/authenticator.ts'
import { isGuestLogin } from '../auth/guest-name.ts'
import type { Config, IssuerConfig } from '../config.ts'
import { type App, identityOf } from './context.ts'
import { endpoint, type GuardOf, json } from './endpoint.ts'

const issuerView = z
  .object({
    id: z.string(),
    name: z.string(),
    issuer: z.string(),
    clientId: z
      .string()
      .nullable()
      .openapi({ description: 'Null: tokens are accepted, but we have no client there.' }),
    requestScopes: z.array(z.string()).readonly(),
    requestParameters: z.record(z.string(), z.string()),
    bearer: z.enum(['access_token', 'id_token']).openapi({ description: 'Which of its tokens to send.' }),
    endpoints: z
      .object({
        authorization: z.string(),
        token: z.string(),
        deviceAuthorization: z.string(),
        revocation: z.string(),
      })
      .partial()
      .openapi({ description: 'These in place of what its metadata says.' }),
  })
  .openapi('Issuer')
const authView = z
  .object({
    mode: z.enum(['local', 'open']),
    local: z.boolean().openapi({ description: 'The local token of this machine is accepted.' }),
    issuers: z.array(issuerView),
  })
  .openapi('Auth')
const whoamiView = z
  .object({
    account: z.string(),
    name: z.string(),
    scopes: z.array(z.enum(SCOPES)).readonly(),
    via: z.enum(['bearer', 'cookie', 'ticket']),
    guest: z.boolean().openapi({ description: 'Here for what was shared, without a sign-in of their own.' }),
    expiresMs: z.int().nullable().openapi({ description: 'When the credential ends; null: it does not.' }),
  })
  .openapi('Whoami')

/** What a client must know to sign in. None of it is secret. */
function showIssuer(config: IssuerConfig): z.infer<typeof issuerView> {
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

/** Where to sign in, and who one is. */
export function addIdentityRoutes(app: App, guardOf: GuardOf, config: Config): void {
  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/auth',
      responses: { 200: json(authView, 'How to sign in') },
    }),
    (context) => {
      const { mode, localTokenSha256, issuers } = config
      const local = localTokenSha256 !== undefined
      return context.json({ mode, local, issuers: issuers.map(showIssuer) }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/whoami',
      responses: { 200: json(whoamiView, 'Who asks') },
    }),
    (context) => {
      const { account, name, scopes, via, login, expiresMs = null } = identityOf(context)
      return context.json({ account, name, scopes, via, guest: isGuestLogin(login), expiresMs }, 200)
    },
  )
}
