import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerInteraction } from './interaction-pages.ts'
import { createProvider, resourceServer } from './issuer-provider.ts'
import { IssuerStore } from './issuer-store.ts'
import { PEOPLE, type Person, SANDBOX_SCOPES } from './users.ts'
import { hiddenField, Visitor } from './visitor.ts'

/** Where our browsers and command lines come back to; a native client may use any port of loopback. */
const REDIRECTS = ['127.0.0.1', 'localhost', '[::1]'].flatMap((host) => [
  `http://${host}/signin/callback`,
  `http://${host}/callback`,
])

export interface IssuerOptions {
  /** Default: `/signin/callback` and `/callback` on any port of loopback. */
  readonly redirectUris?: readonly string[]
  /** Whom tokens are meant for; a URL, as RFC 8707 wants it. */
  readonly audience?: string
  readonly people?: Readonly<Record<string, Person>>
  /** Tokens are for us only where `resource` says so, and are renewed only where `offline_access` was asked for. */
  readonly isStrict?: boolean
  readonly accessTokenSeconds?: number
  readonly refreshTokenSeconds?: number
}

export interface MintOptions {
  /** Default: all of ours. */
  readonly scopes?: readonly string[]
  /** Not positive: a token that has ended already. */
  readonly expiresInSeconds?: number
  readonly audience?: string
  /** Added to the token's own claims. */
  readonly claims?: Readonly<Record<string, unknown>>
}

/** What control is told about this issuer; its `IssuerConfig` has this shape. */
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
  /** A second client of the same issuer, whose codes and tokens are not for us. */
  readonly otherClientId: string
  readonly audience: string
  /** A valid access token, signed by the provider itself. */
  mintToken(person: string, options?: MintOptions): Promise<string>
  /** Goes through the pages of an authorization URL; returns where the issuer sends the browser. */
  signIn(authorizationUrl: string | URL, person: string): Promise<URL>
  /** Like {@link signIn}, of somebody who refuses. */
  refuse(authorizationUrl: string | URL): Promise<URL>
  /** Types the code of a device into the issuer's page and signs the person in. */
  approveDevice(userCode: string, person: string): Promise<void>
  /** Types the code of a device into the issuer's page and refuses it. */
  refuseDevice(userCode: string): Promise<void>
  /** Ends what the person has here: from now on nothing is refreshed and nobody of that name signs in. */
  revokePerson(person: string): Promise<void>
  configFor(changes?: Partial<IssuerSettings>): IssuerSettings
}

/** Starts a real issuer on a free port of loopback. */
export async function startIssuer(options: IssuerOptions = {}): Promise<TestIssuer> {
  const audience = options.audience ?? 'https://sandwire.test/'
  const accessTokenSeconds = options.accessTokenSeconds ?? 300
  const people = new Map(Object.entries(options.people ?? PEOPLE))
  const personOf = (account: string): Person | undefined => people.get(account)
  const store = new IssuerStore()
  const clientId = 'sandwire'
  const otherClientId = 'somebody-else'
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
    personOf,
    extraClaims: (token) => claimsOf.get(token),
  })
  const answer = provider.callback()
  server.on('request', (request, response) => {
    const isInteraction = (request.url ?? '').startsWith('/interaction/')
    const done = isInteraction
      ? answerInteraction(provider, personOf, request, response)
      : answer(request, response)
    Promise.resolve(done).catch((error: unknown) => {
      response.statusCode = 500
      response.end(String(error))
    })
  })

  const passPages = async (visitor: Visitor, start: URL, form: Readonly<Record<string, string>>) => {
    const arrival = await visitor.open(start)
    return 'left' in arrival ? arrival : visitor.open(arrival.url, form)
  }
  const leave = async (start: string | URL, form: Readonly<Record<string, string>>): Promise<URL> => {
    const arrival = await passPages(new Visitor(url), new URL(start), form)
    if (!('left' in arrival)) throw new Error(`The issuer stays at ${arrival.url.pathname}: ${arrival.page}`)
    return arrival.left
  }
  const answerDevice = async (userCode: string, form: Readonly<Record<string, string>>): Promise<void> => {
    const visitor = new Visitor(url)
    const verification = new URL('/device', url)
    const input = await visitor.open(verification)
    if ('left' in input) throw new Error('The issuer sends the browser away from its device page')
    const xsrf = hiddenField(input.page, 'xsrf')
    const asked = await visitor.open(verification, { xsrf, user_code: userCode, confirm: 'yes' })
    if ('left' in asked || !asked.url.pathname.startsWith('/interaction/'))
      throw new Error(`The issuer does not accept the code "${userCode}"`)
    await visitor.open(asked.url, form)
  }

  return {
    url,
    clientId,
    otherClientId,
    audience,

    async mintToken(person, mint = {}) {
      const client = await provider.Client.find(clientId)
      if (client === undefined || personOf(person) === undefined) throw new Error(`There is no "${person}"`)
      const token = new provider.AccessToken({
        accountId: person,
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

    signIn: (start, person) => leave(start, { user: person, answer: 'yes' }),
    refuse: (start) => leave(start, { answer: 'no' }),
    approveDevice: (userCode, person) => answerDevice(userCode, { user: person, answer: 'yes' }),
    refuseDevice: (userCode) => answerDevice(userCode, { answer: 'no' }),

    async revokePerson(person) {
      people.delete(person)
      store.forget(person)
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
}
