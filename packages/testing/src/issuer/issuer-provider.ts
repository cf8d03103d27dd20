import { generateKeyPairSync } from 'node:crypto'
import Provider, { type ResourceServer } from 'oidc-provider'
import type { IssuerStore } from './issuer-store.ts'
import { type TestUser, SANDBOX_SCOPES } from './users.ts'

export interface ProviderSettings {
  readonly url: string
  readonly audience: string
  readonly accessTokenSeconds: number
  readonly refreshTokenSeconds: number
  /** See `IssuerOptions.isStrict`. */
  readonly isStrict: boolean
  readonly store: IssuerStore
  /** Undefined: the account does not exist or was revoked. */
  readonly findUser: (account: string) => TestUser | undefined
  /** Claims that a test adds to a minted access token. */
  readonly extraClaims: (token: object) => Readonly<Record<string, unknown>> | undefined
}

export function resourceServer(
  settings: Pick<ProviderSettings, 'audience' | 'accessTokenSeconds'>,
): ResourceServer {
  return {
    audience: settings.audience,
    scope: SANDBOX_SCOPES.join(' '),
    accessTokenFormat: 'jwt',
    accessTokenTTL: settings.accessTokenSeconds,
    jwt: { sign: { alg: 'RS256' } },
  }
}

/** An `oidc-provider` with the features that Sandwire needs from an issuer. */
export function createProvider(settings: ProviderSettings): Provider {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = { ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: crypto.randomUUID() }
  const { store, findUser, isStrict } = settings
  const defaults = {
    defaultResource: async () => settings.audience,
    useGrantedResource: async () => true,
  }
  return new Provider(settings.url, {
    adapter: (model) => store.adapter(model),
    jwks: { keys: [key] as never },
    cookies: { keys: [crypto.randomUUID()] },
    scopes: ['openid', 'offline_access'],
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
    // Puts the name into the ID token, as most issuers do.
    conformIdTokenClaims: false,
    responseTypes: ['code'],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async (_context, client, code) =>
      client.grantTypeAllowed('refresh_token') && (!isStrict || code.scopes.has('offline_access')),
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    features: {
      devInteractions: { enabled: false },
      deviceFlow: { enabled: true, mask: '****-****' },
      revocation: { enabled: true, allowedPolicy: async () => true },
      resourceIndicators: {
        enabled: true,
        ...(isStrict ? {} : defaults),
        getResourceServerInfo: async () => resourceServer(settings),
      },
    },
    ttl: {
      AccessToken: (_context, token) => token.resourceServer?.accessTokenTTL ?? settings.accessTokenSeconds,
      AuthorizationCode: 60,
      DeviceCode: 600,
      Grant: settings.refreshTokenSeconds,
      IdToken: 600,
      Interaction: 600,
      RefreshToken: settings.refreshTokenSeconds,
      Session: 3600,
    },
    extraTokenClaims: async (_context, token) => ({
      ...('accountId' in token ? { name: findUser(String(token.accountId))?.name } : {}),
      ...settings.extraClaims(token),
    }),
    findAccount: async (_context, account) => {
      const user = findUser(account)
      if (user === undefined) return undefined
      const claims = { sub: account, name: user.name, email: user.email, email_verified: true }
      return { accountId: account, claims: async () => claims }
    },
  })
}
