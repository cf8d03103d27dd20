import { generateKeyPairSync } from 'node:crypto'
import Provider, { type ResourceServer } from 'oidc-provider'
import type { IssuerStore } from './issuer-store.ts'
import { type Person, SANDBOX_SCOPES } from './users.ts'

export interface ProviderSettings {
  readonly url: string
  readonly audience: string
  readonly accessTokenSeconds: number
  readonly refreshTokenSeconds: number
  /** Gives nothing that it is not asked for. */
  readonly isStrict: boolean
  readonly store: IssuerStore
  /** Undefined: nobody of that name, or nobody any more. */
  readonly personOf: (account: string) => Person | undefined
  /** Claims that a test adds to an access token it mints. */
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

/** The real provider, with everything on that Sandwire needs from an issuer. */
export function createProvider(settings: ProviderSettings): Provider {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = { ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: crypto.randomUUID() }
  const { store, personOf, isStrict } = settings
  const kindness = {
    defaultResource: async () => settings.audience,
    useGrantedResource: async () => true,
  }
  return new Provider(settings.url, {
    adapter: (model) => store.adapter(model),
    jwks: { keys: [key] as never },
    cookies: { keys: [crypto.randomUUID()] },
    scopes: ['openid', 'offline_access'],
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
    // So that the ID token itself says the name, as those of most issuers do.
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
        ...(isStrict ? {} : kindness),
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
      ...('accountId' in token ? { name: personOf(String(token.accountId))?.name } : {}),
      ...settings.extraClaims(token),
    }),
    findAccount: async (_context, account) => {
      const person = personOf(account)
      if (person === undefined) return undefined
      const claims = { sub: account, name: person.name, email: person.email, email_verified: true }
      return { accountId: account, claims: async () => claims }
    },
  })
}
