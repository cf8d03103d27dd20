/** A relay in front of an issuer that records token requests and shortens the poll interval. */
export interface IssuerRelay extends Disposable {
  readonly url: string
  /** Grant types of token requests. */
  readonly grants: readonly string[]
  /** Paths of all requests. */
  readonly paths: readonly string[]
  /** Endpoints for the issuer's metadata. */
  readonly metadata: Readonly<Record<string, string>>
  /** Stops responding. */
  close(): void
}

export function openIssuerRelay(issuer: string): IssuerRelay {
  const grants: string[] = []
  const paths: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async (request) => {
      const { pathname } = new URL(request.url)
      paths.push(pathname)
      const body = await request.text()
      if (pathname === '/token') grants.push(new URLSearchParams(body).get('grant_type') ?? '')
      const answer = await fetch(issuer + pathname, {
        method: request.method,
        headers: { 'content-type': request.headers.get('content-type') ?? '' },
        ...(request.method === 'POST' ? { body } : {}),
      })
      if (pathname !== '/device/auth') return answer
      // By default a client polls every five seconds.
      return Response.json({ ...((await answer.json()) as object), interval: 1 }, { status: answer.status })
    },
  })
  const url = `http://127.0.0.1:${server.port}`
  const close = (): void => void server.stop(true)
  return {
    url,
    grants,
    paths,
    metadata: {
      token_endpoint: `${url}/token`,
      device_authorization_endpoint: `${url}/device/auth`,
      revocation_endpoint: `${url}/token/revocation`,
    },
    close,
    [Symbol.dispose]: close,
  }
}
