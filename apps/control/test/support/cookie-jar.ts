import type { RunningControl } from './control.ts'

/** A minimal browser: stores our cookies and sends no token. */
export class CookieJar {
  readonly cookies = new Map<string, string>()
  readonly #control: RunningControl

  constructor(control: RunningControl) {
    this.#control = control
  }

  async open(
    path: string,
    init: { method?: string; headers?: Record<string, string>; json?: unknown } = {},
  ): Promise<Response> {
    const { json, headers, method = 'GET' } = init
    const response = await fetch(`http://127.0.0.1:${this.#control.port}${path}`, {
      method,
      redirect: 'manual',
      headers: {
        host: `localhost:${this.#control.port}`,
        cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    })
    for (const line of response.headers.getSetCookie()) this.#take(line)
    return response
  }

  /** A request as our own page sends it. */
  read(path: string): Promise<Response> {
    return this.open(path, { headers: { 'sec-fetch-site': 'same-origin' } })
  }

  write(method: string, path: string, json?: unknown): Promise<Response> {
    return this.open(path, { method, headers: { origin: this.#control.origin }, json })
  }

  /** Status of a request that needs a sign-in. */
  async statusOfWhoami(): Promise<number> {
    return (await this.read('/api/whoami')).status
  }

  #take(line: string): void {
    const [pair = ''] = line.split(';')
    const at = pair.indexOf('=')
    if (line.includes('Max-Age=0')) this.cookies.delete(pair.slice(0, at))
    else this.cookies.set(pair.slice(0, at), pair.slice(at + 1))
  }
}
