import type { IssuerConfig } from '@sandwire/operator-settings'
import { exportJWK, generateKeyPair, type JWK } from 'jose'

const ALGORITHMS = {
  RS256: { name: 'RSASSA-PKCS1-v1_5' },
  ES256: { name: 'ECDSA', hash: 'SHA-256' },
  EdDSA: { name: 'Ed25519' },
} as const
type Algorithm = keyof typeof ALGORITHMS

export interface SigningKey {
  readonly alg: Algorithm
  readonly kid: string
  readonly privateKey: CryptoKey
  readonly publicJwk: JWK
}

export async function makeKey(kid: string, alg: Algorithm = 'RS256'): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, kid, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

const encode = (text: string): string =>
  new TextEncoder().encode(text).toBase64({ alphabet: 'base64url', omitPadding: true })

/** Signs the exact text of header and claims, which may be malformed. */
export async function signText(header: string, payload: string, key: SigningKey): Promise<string> {
  return signEncoded(`${encode(header)}.${encode(payload)}`, key)
}

export async function signEncoded(input: string, { alg, privateKey }: SigningKey): Promise<string> {
  const signature = await crypto.subtle.sign(ALGORITHMS[alg], privateKey, new TextEncoder().encode(input))
  return `${input}.${new Uint8Array(signature).toBase64({ alphabet: 'base64url', omitPadding: true })}`
}

/** How the issuer responds. */
export type IssuerBehavior = 'well' | 'broken' | 'redirecting' | 'endless' | 'silent' | 'lying'

/** An issuer whose metadata, keys and tokens are set by the test; it listens on loopback. */
export class FakeIssuer implements AsyncDisposable {
  readonly url: string
  /** Published keys. */
  keys: SigningKey[]
  behavior: IssuerBehavior = 'well'
  /** Overrides of its metadata. */
  metadata: Record<string, unknown> = {}
  /** Requested paths. */
  readonly requested: string[] = []
  readonly #server: Bun.Server<undefined>

  constructor(keys: readonly SigningKey[], at: { readonly hostname?: string } = {}) {
    this.keys = [...keys]
    this.#server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: (request) => this.#answer(request) })
    this.url = `http://${at.hostname ?? '127.0.0.1'}:${this.#server.port}`
  }

  config(changes: Partial<IssuerConfig> = {}): IssuerConfig {
    return {
      id: 'fake',
      name: 'Fake',
      issuer: this.url,
      audiences: ['sandwire'],
      algorithms: ['RS256'],
      defaultScopes: ['connect', 'exec', 'admin'],
      clientId: 'cli',
      requestScopes: ['openid'],
      bearer: 'access_token',
      endpoints: {},
      ...changes,
    }
  }

  /** Claims of a valid token, with overrides. */
  claims(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
    const now = Math.floor(Date.now() / 1000)
    return { iss: this.url, sub: 'ada', aud: 'sandwire', iat: now, exp: now + 300, ...changes }
  }

  /** A token; undefined members are omitted. */
  token(
    claims: Readonly<Record<string, unknown>> = {},
    options: { readonly header?: Readonly<Record<string, unknown>>; readonly key?: SigningKey } = {},
  ): Promise<string> {
    const key = options.key ?? this.keys[0]
    if (key === undefined) throw new Error('The issuer has no key')
    const header = { alg: key.alg, kid: key.kid, typ: 'at+jwt', ...options.header }
    return signText(JSON.stringify(header), JSON.stringify(this.claims(claims)), key)
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    this.requested.push(pathname)
    switch (this.behavior) {
      case 'broken':
        return new Response('no', { status: 500 })
      case 'redirecting':
        return Response.redirect(`${this.url}/elsewhere${pathname}`, 302)
      case 'endless':
        return new Response(`{"keys":[${' '.repeat(1024 * 1024)}]}`)
      case 'silent':
        return new Promise(() => undefined)
      case 'lying':
      case 'well':
        return this.#tell(pathname)
    }
  }

  #tell(pathname: string): Response {
    if (pathname === '/keys' || pathname === '/elsewhere/keys')
      return Response.json({ keys: this.keys.map(({ publicJwk }) => publicJwk) })
    if (pathname === '/.well-known/openid-configuration') {
      const issuer = this.behavior === 'lying' ? 'https://other.example' : this.url
      return Response.json({ issuer, jwks_uri: `${this.url}/keys`, ...this.metadata })
    }
    return new Response(null, { status: 404 })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true)
  }
}
