/** Redirects after which a loop is assumed. */
const MAX_STEPS = 20

/** Where a navigation ended: at another origin (`left`) or on a page of the issuer. */
export type NavigationResult = { readonly left: URL } | { readonly url: URL; readonly page: string }

/** A minimal browser for the issuer's pages: cookies, redirects and forms. */
export class FormBrowser {
  readonly #origin: string
  readonly #cookies = new Map<string, string>()

  constructor(origin: string) {
    this.#origin = origin
  }

  /** Opens a page, or posts a form to it, and follows redirects within the issuer's origin. */
  async open(url: URL, form?: Readonly<Record<string, string>>): Promise<NavigationResult> {
    let body = form
    let next = url
    for (let step = 0; step < MAX_STEPS; step++) {
      if (next.origin !== this.#origin) return { left: next }
      const response = await this.#request(next, body)
      const location = response.headers.get('location')
      const page = await response.text()
      if (location === null) {
        if (!response.ok) throw new Error(`The issuer responded with ${response.status}: ${page}`)
        return { url: next, page }
      }
      next = new URL(location, next)
      body = undefined
    }
    throw new Error('The issuer redirects in a loop')
  }

  async #request(url: URL, form?: Readonly<Record<string, string>>): Promise<Response> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie },
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';')
      const at = pair.indexOf('=')
      this.#cookies.set(pair.slice(0, at), pair.slice(at + 1))
    }
    return response
  }
}

/** Value of a hidden field of a form. */
export function hiddenField(page: string, name: string): string {
  const value = new RegExp(`name="${name}" value="([^"]*)"`).exec(page)?.[1]
  if (value === undefined) throw new Error(`The page has no field "${name}": ${page}`)
  return value
}
