import { createServer } from 'node:net'
import { SandwireError } from '@sandwire/protocol'
import type { ListenSettings } from '../settings/listen.ts'

/** Codes that say the machine has no such address, IPv6 switched off among them. */
const NO_SUCH_ADDRESS = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL'])

type Probe = { readonly port: number } | { readonly code: string }

/** Listens for a moment: the port it got, or why it could not. */
function probe(host: string, port: number): Promise<Probe> {
  const { promise, resolve } = Promise.withResolvers<Probe>()
  const server = createServer()
  server.once('error', (error: NodeJS.ErrnoException) => resolve({ code: error.code ?? 'failed' }))
  server.listen({ host, port, exclusive: true }, () => {
    const address = server.address()
    const got = typeof address === 'object' && address !== null ? address.port : port
    server.close(() => resolve({ port: got }))
  })
  return promise
}

function formatAddress(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/**
 * The addresses to listen on, all with one port. `localhost` means both loopbacks: were one left free, another user of this
 * machine could answer there in our name. Throws `conflict` when the port is taken.
 */
export async function chooseAddresses(
  hosts: readonly string[],
  wanted: number,
): Promise<{ readonly port: number; readonly listen: readonly string[] }> {
  const listen: string[] = []
  let port = wanted
  for (const host of hosts) {
    const found = await probe(host, port)
    if ('port' in found) {
      port = found.port
      listen.push(formatAddress(host, port))
    } else if (!NO_SUCH_ADDRESS.has(found.code)) {
      throw new SandwireError(
        'conflict',
        `Cannot listen on ${formatAddress(host, port)}: ${reason(found.code)}\nhint: choose another with --port, or 0 for a free one`,
      )
    }
  }
  if (listen.length === 0)
    throw new SandwireError('conflict', `Cannot listen: this machine has no address ${hosts.join(' or ')}`)
  return { port, listen }
}

function reason(code: string): string {
  if (code === 'EADDRINUSE') return 'the port is taken'
  return code === 'EACCES' ? 'ports below 1024 need root' : code
}

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
export function planServerNames(
  { mode, publicOrigin, tls }: Pick<ListenSettings, 'mode' | 'publicOrigin' | 'tls'>,
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
