import type { Reach } from '../settings/reach.ts'

/** What this server is called. */
export interface ServerNames {
  /** The address to show. */
  readonly url: string
  /** Where this machine's user signs in. */
  readonly pageUrl: string
  /** Origins of its own pages, the one that people use first. */
  readonly origins: readonly [string, ...string[]]
  /** Host headers that mean it. */
  readonly hosts: readonly string[]
}

/**
 * Names of a server that listens on a port: the public one if it has one, and loopback for whoever looks after it. Browsers give
 * a cookie to every port of a host, and `localhost` has many; so its user signs in under a name of loopback that only they know.
 */
export function nameServer(
  { mode, publicOrigin, tls }: Pick<Reach, 'mode' | 'publicOrigin' | 'tls'>,
  { port, pageName }: { readonly port: number; readonly pageName: string },
): ServerNames {
  const scheme = tls === undefined ? 'http' : 'https'
  const loopback = ['localhost', '127.0.0.1', '[::1]'].map((name) => `${name}:${port}`)
  const local = `${scheme}://localhost:${port}`
  const first = publicOrigin ?? local
  // Pages of others come from the public origin alone; loopback is another machine's page there.
  const others = mode === 'open' ? [] : loopback.map((host) => `${scheme}://${host}`)
  const hosts = publicOrigin === undefined ? loopback : [new URL(publicOrigin).host, ...loopback]
  const hasPageName = mode === 'local' && publicOrigin === undefined && tls === undefined
  const page = hasPageName ? [`${pageName}.localhost:${port}`] : []
  const pages = page.map((host) => `${scheme}://${host}`)
  return {
    url: first,
    pageUrl: pages[0] ?? first,
    origins: [first, ...others.filter((origin) => origin !== first), ...pages],
    hosts: [...new Set([...hosts, ...page])],
  }
}
