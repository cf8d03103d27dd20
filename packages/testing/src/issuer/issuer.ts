import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerInteraction } from './interaction-pages.ts'
import { createProvider, resourceServer } from './issuer-provider.ts'
import { IssuerStore } from './issuer-store.ts'
import { TEST_USERS, type TestUser, SANDBOX_SCOPES } from './users.ts'
import { FormBrowser, hiddenField } from './form-browser.ts'

/** Redirect URIs of the page and the CLI; native clients may use any loopback port. */
const REDIRECTS = ['127.0.0.1', 'localhost', '[::1]'].flatMap((host) => [
  `http://${host}/signin/callback/test`,
  `http://${host}/callback`,
])

const METADATA = '/.well-known/openid-configuration'
/** Header of a request for the provider's own metadata. */
const ORIGINAL = 'x-original'

export interface IssuerOptions {
  /** Default: `/signin/callback/test` and `/callback` on any loopback port. */
  readonly redirectUris?: readonly string[]
  /** Audience of the tokens; a URL, as RFC 8707 requires. */
  readonly audience?: string
  readonly users?: Readonly<Record<string, TestUser>>
  /** Issues tokens for the audience only when `resource` names it, and refresh tokens only with `offline_access`. */
  readonly isStrict?: boolean
  readonly accessTokenSeconds?: number
  readonly refreshTokenSeconds?: number
}

export interface MintOptions {
  /** Default: all of `SANDBOX_SCOPES`. */
  readonly scopes?: readonly string[]
  /** Zero or negative: a token that has already expired. */
  readonly expiresInSeconds?: number
  readonly audience?: string
  /** Added to the token's own claims. */
  readonly claims?: Readonly<Record<string, unknown>>
}

/** Settings of this issuer for control, in the shape of its `IssuerConfig`. */
export interface IssuerSettings {
  id: string
  name: string
  issuer: string
  audiences: string[]
  algorithms: 'RS256'[]
  defaultScopes: ('connect' | 'exec' | 'admin')[]
  clientId: string
  requestScopes: string[]
  requestParameters?: Record<string, string>
  bearer: 'access_token' | 'id_token'
  endpoints: Record<string, never>
}

export interface TestIssuer extends AsyncDisposable {
  readonly url: string
  readonly clientId: string
  /** A second client of the same issuer, for which Sandwire must not accept codes or tokens. */
  readonly otherClientId: string
  readonly audience: string
  /** Replaces members of its metadata. */
  metadata: Readonly<Record<string, unknown>>
  /** A valid access token, signed by the provider itself. */
  mintToken(user: string, options?: MintOptions): Promise<string>
  /** Signs in at an authorization URL and returns the URL that the issuer redirects to. */
  signIn(authorizationUrl: string | URL, user: string): Promise<URL>
  /** Like {@link signIn}, but the user refuses. */
  refuse(authorizationUrl: string | URL): Promise<URL>
  /** Enters the user code on the device page and signs the user in. */
  approveDevice(userCode: string, user: string): Promise<void>
  /** Enters the user code on the device page and refuses the request. */
  refuseDevice(userCode: string): Promise<void>
  /** Deletes the user: its refresh tokens stop working and it cannot sign in. */
  revokeUser(user: string): Promise<void>
  configFor(changes?: Partial<IssuerSettings>): IssuerSettings
}

/** Starts an OpenID provider on a free loopback port. */
export async function startIssuer(options: IssuerOptions = {}): Promise<TestIssuer> {
  const audience = options.audience ?? 'https://sandwire.test/'
  const accessTokenSeconds = options.accessTokenSeconds ?? 300
  const users = new Map(Object.entries(options.users ?? TEST_USERS))
  const findUser = (account: string): TestUser | undefined => users.get(account)
  const store = new IssuerStore()
  const clientId = 'sandwire'
  const otherClientId = 'other-client'
  for (const id of [clientId, otherClientId])
    store.put('Client', id, {
      client_id: id,
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      response_types: ['code'],
      redirect_uris: [...(options.redirectUris ?? REDIRECTS)],
    })

  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const claimsOf = new WeakMap<object, Readonly<Record<string, unknown>>>()
  const provider = createProvider({
    url,
    audience,
    accessTokenSeconds,
    refreshTokenSeconds: options.refreshTokenSeconds ?? 3_600,
    isStrict: options.isStrict ?? false,
    store,
    findUser,
    extraClaims: (token) => claimsOf.get(token),
  })
  const answer = provider.callback()
  const answerMetadata = async (response: ServerResponse): Promise<void> => {
    const original = await fetch(url + METADATA, { headers: { [ORIGINAL]: '1' } })
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ ...((await original.json()) as object), ...issuer.metadata }))
  }
  server.on('request', (request, response) => {
    const isInteraction = (request.url ?? '').startsWith('/interaction/')
    const isMetadata = request.url === METADATA && request.headers[ORIGINAL] === undefined
    const done = isInteraction
      ? answerInteraction(provider, findUser, request, response)
      : isMetadata
        ? answerMetadata(response)
        : answer(request, response)
    Promise.resolve(done).catch((error: unknown) => {
      response.statusCode = 500
      response.end(String(error))
    })
  })

  const submitForm = async (browser: FormBrowser, start: URL, form: Readonly<Record<string, string>>) => {
    const result = await browser.open(start)
    return 'left' in result ? result : browser.open(result.url, form)
  }
  const finishSignIn = async (start: string | URL, form: Readonly<Record<string, string>>): Promise<URL> => {
    const result = await submitForm(new FormBrowser(url), new URL(start), form)
    if (!('left' in result))
      throw new Error(`The issuer did not redirect from ${result.url.pathname}: ${result.page}`)
    return result.left
  }
  const answerDevice = async (userCode: string, form: Readonly<Record<string, string>>): Promise<void> => {
    const browser = new FormBrowser(url)
    const verification = new URL('/device', url)
    const input = await browser.open(verification)
    if ('left' in input) throw new Error('The issuer redirected the browser away from its device page')
    const xsrf = hiddenField(input.page, 'xsrf')
    const confirmed = await browser.open(verification, { xsrf, user_code: userCode, confirm: 'yes' })
    if ('left' in confirmed || !confirmed.url.pathname.startsWith('/interaction/'))
      throw new Error(`The issuer does not accept the code "${userCode}"`)
    await browser.open(confirmed.url, form)
  }

  const issuer: TestIssuer = {
    url,
    clientId,
    otherClientId,
    audience,
    metadata: {},

    async mintToken(user, mint = {}) {
      const client = await provider.Client.find(clientId)
      if (client === undefined || findUser(user) === undefined) throw new Error(`There is no user "${user}"`)
      const token = new provider.AccessToken({
        accountId: user,
        client,
        gty: 'authorization_code',
      } as never)
      const info = resourceServer({ audience: mint.audience ?? audience, accessTokenSeconds })
      token.resourceServer = new provider.ResourceServer(info.audience ?? audience, info) as never
      token.scope = (mint.scopes ?? SANDBOX_SCOPES).join(' ')
      Object.assign(token, { expiresIn: mint.expiresInSeconds ?? accessTokenSeconds })
      if (mint.claims !== undefined) claimsOf.set(token, mint.claims)
      return token.save()
    },

    signIn: (start, user) => finishSignIn(start, { user, answer: 'yes' }),
    refuse: (start) => finishSignIn(start, { answer: 'no' }),
    approveDevice: (userCode, user) => answerDevice(userCode, { user, answer: 'yes' }),
    refuseDevice: (userCode) => answerDevice(userCode, { answer: 'no' }),

    async revokeUser(user) {
      users.delete(user)
      store.deleteAccount(user)
    },

    configFor: (changes = {}) => ({
      id: 'test',
      name: 'Test issuer',
      issuer: url,
      audiences: [audience],
      algorithms: ['RS256'],
      defaultScopes: [],
      clientId,
      requestScopes: ['openid', 'profile', 'email', 'offline_access', ...SANDBOX_SCOPES],
      bearer: 'access_token',
      endpoints: {},
      ...changes,
    }),

    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
  return issuer
}
