import type { RunningControl } from './control.ts'
import { fieldOf } from './json.ts'

/** Signing secret of the tests' service tokens; a binding of control. */
export const JWT_SECRET = 'a secret that only tests know, long enough'

/** Settings without rate limits. */
export const UNLIMITED = {
  attachesPerMinutePerAddress: 0,
  attachesPerMinutePerUser: 0,
  workspaceCostPerMinutePerUser: 0,
  strangersPerMinutePerAddress: 0,
}

function base64Url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: 'base64url', omitPadding: true })
}

/** A service token for a user of this name. */
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

/** A decoded response of the API. */
export interface ApiResponse {
  readonly status: number
  readonly body: unknown
  readonly headers: Headers
}

/** A field of the body, as text. */
export function textIn({ body }: Pick<ApiResponse, 'body'>, name: string): string {
  return String(fieldOf(body, name))
}

/** Status and error code. */
export function codeIn({ status, body }: ApiResponse): string {
  return `${status} ${String(fieldOf(fieldOf(body, 'error'), 'code'))}`
}

async function decode(response: Response): Promise<ApiResponse> {
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers }
}

/** Sends requests with one bearer token, or with none. */
export class ApiClient {
  readonly #control: RunningControl
  readonly bearer: string | undefined

  constructor(control: RunningControl, bearer: string | undefined) {
    this.#control = control
    this.bearer = bearer
  }

  static async named(control: RunningControl, name: string, claims = {}): Promise<ApiClient> {
    return new ApiClient(control, await tokenOf(name, claims))
  }

  /** For a WebSocket. */
  get headers(): readonly (readonly [string, string])[] {
    return this.bearer === undefined ? [] : [['Authorization', `Bearer ${this.bearer}`]]
  }

  /** Status and headers of a response; its body is canceled unless it is an error. */
  async begin(method: string, route: string): Promise<ApiResponse> {
    const response = await this.#send(method, route)
    if (response.status >= 400) return decode(response)
    await response.body?.cancel()
    return { status: response.status, body: undefined, headers: response.headers }
  }

  async request(
    method: string,
    route: string,
    json?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<ApiResponse> {
    return decode(await this.#send(method, route, json, headers))
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

  get(route: string): Promise<ApiResponse> {
    return this.request('GET', route)
  }

  post(route: string, json: unknown): Promise<ApiResponse> {
    return this.request('POST', route, json)
  }

  delete(route: string): Promise<ApiResponse> {
    return this.request('DELETE', route)
  }
}

/** The part of a share link after the #. */
export function linkIn(response: ApiResponse): string {
  return textIn(response, 'link').split('#')[1] ?? ''
}
