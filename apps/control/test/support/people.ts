import type { RunningControl } from './control.ts'

/** Secret of the service tokens by which the tests' people are known; a binding of control. */
export const JWT_SECRET = 'a secret that only tests know, long enough'

/** Settings of tests that are not about limits: nobody is held up by how often they come. */
export const UNLIMITED = {
  attachesPerMinutePerAddress: 0,
  attachesPerMinutePerUser: 0,
  workspaceCostPerMinutePerUser: 0,
  strangersPerMinutePerAddress: 0,
}

function base64Url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: 'base64url', omitPadding: true })
}

/** A service token for somebody of this name. */
export async function tokenOf(sub: string, claims: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const encode = (value: unknown): string => base64Url(new TextEncoder().encode(JSON.stringify(value)))
  const exp = Math.floor(Date.now() / 1000) + 3600
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ sub, name: sub, exp, ...claims })}`
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', new TextEncoder().encode(JWT_SECRET), algorithm, false, [
    'sign',
  ])
  const mac = await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(text))
  return `${text}.${base64Url(new Uint8Array(mac))}`
}

/** What an API call came to: its status, and what it said. */
export interface Told {
  readonly status: number
  readonly body: unknown
  readonly headers: Headers
}

/** A field of what was told, as text. */
export function textIn({ body }: Pick<Told, 'body'>, name: string): string {
  return String(Reflect.get(Object(body), name))
}

/** Status and error code. */
export function codeIn({ status, body }: Told): string {
  return `${status} ${String(Reflect.get(Object(Reflect.get(Object(body), 'error')), 'code'))}`
}

async function tell(response: Response): Promise<Told> {
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers }
}

/** Somebody who talks to control with a bearer of their own, or with none. */
export class Person {
  readonly #control: RunningControl
  readonly bearer: string | undefined

  constructor(control: RunningControl, bearer: string | undefined) {
    this.#control = control
    this.bearer = bearer
  }

  static async named(control: RunningControl, name: string, claims = {}): Promise<Person> {
    return new Person(control, await tokenOf(name, claims))
  }

  /** For a WebSocket. */
  get headers(): readonly (readonly [string, string])[] {
    return this.bearer === undefined ? [] : [['Authorization', `Bearer ${this.bearer}`]]
  }

  /** What an answer begins with; the rest of it is not waited for, unless it is an error. */
  async begin(method: string, route: string): Promise<Told> {
    const response = await this.#send(method, route)
    if (response.status >= 400) return tell(response)
    await response.body?.cancel()
    return { status: response.status, body: undefined, headers: response.headers }
  }

  async ask(
    method: string,
    route: string,
    json?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Told> {
    return tell(await this.#send(method, route, json, headers))
  }

  async #send(
    method: string,
    route: string,
    json?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const authorization: Record<string, string> =
      this.bearer === undefined ? {} : { authorization: `Bearer ${this.bearer}` }
    return fetch(`http://127.0.0.1:${this.#control.port}${route}`, {
      method,
      redirect: 'manual',
      headers: {
        host: `localhost:${this.#control.port}`,
        ...authorization,
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    })
  }

  get(route: string): Promise<Told> {
    return this.ask('GET', route)
  }

  post(route: string, json: unknown): Promise<Told> {
    return this.ask('POST', route, json)
  }

  delete(route: string): Promise<Told> {
    return this.ask('DELETE', route)
  }
}

/** What follows the # of a link. */
export function linkIn(told: Told): string {
  return textIn(told, 'link').split('#')[1] ?? ''
}
