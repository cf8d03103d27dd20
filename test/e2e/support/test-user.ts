import { createHmac } from 'node:crypto'
import type { Deployment } from './deployment.ts'
import type { WireServer } from './wire-server.ts'

/** Environment of a host that accepts the tokens of `mintToken`. */
export const USERS_ENV = { JWT_SECRET: 'a secret that only tests know, long enough' }

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** Signs a service token for a user. */
export function mintToken(sub: string, claims: Readonly<Record<string, unknown>> = {}): string {
  const now = Math.floor(Date.now() / 1000)
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ sub, name: sub, iat: now, exp: now + 3600, ...claims })}`
  return `${text}.${createHmac('sha256', USERS_ENV.JWT_SECRET).update(text).digest('base64url')}`
}

/** An account of a deployment, with its own token. */
export class TestUser {
  readonly token: string
  readonly #deployment: Pick<Deployment, 'host' | 'fetch'>

  constructor(deployment: Pick<Deployment, 'host' | 'fetch'>, token: string) {
    this.#deployment = deployment
    this.token = token
  }

  /** A server for the wire tests with this user's credential; the sandbox is omitted to join by session id. */
  server(sandbox?: string): WireServer {
    const { port } = this.#deployment.host
    return {
      port,
      headers: { authorization: `Bearer ${this.token}` },
      ...(sandbox === undefined ? {} : { sandbox }),
      socketUrl: (path) => `ws://127.0.0.1:${port}${path}`,
      fetch: (path, init) => this.fetch(path.replace(/^\/sessions/, '/api/account/sessions'), init),
      stop: () => Promise.resolve(),
    }
  }

  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${this.token}`)
    return this.#deployment.fetch(path, { ...init, headers })
  }

  /** Sends a request and returns the JSON of the response; throws on an error status. */
  async send(method: string, path: string, json?: unknown): Promise<Readonly<Record<string, unknown>>> {
    const headers: Record<string, string> = json === undefined ? {} : { 'content-type': 'application/json' }
    const body = json === undefined ? {} : { body: JSON.stringify(json) }
    const response = await this.fetch(path, { method, headers, ...body })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
    return (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>
  }

  /** Shares with another user, who redeems the link; returns the grant's id. */
  async shareWith(other: TestUser, request: object): Promise<string> {
    const { grant, link } = await this.send('POST', '/api/grants', { role: 'collaborator', ...request })
    await other.send('POST', '/api/grants/redeem', { link: String(link).split('#')[1] })
    return String(grant)
  }
}
