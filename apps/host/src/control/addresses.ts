import { createHash } from 'node:crypto'
import { createServer } from 'node:net'
import { SandwireError } from '@sandwire/protocol'
import type { ListenSettings } from '../settings/listen.ts'

/** Codes for an address that the machine does not have, for example because IPv6 is off. */
const NO_SUCH_ADDRESS = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL'])

type Probe = { readonly port: number } | { readonly code: string }

/** Listens for a moment: the port it got, or the code of the error. */
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

/** Addresses to listen on, or why that is not possible. */
export type ListenPlan =
  | { readonly kind: 'free'; readonly port: number; readonly listen: readonly string[] }
  /** `code` is the system's, such as EADDRINUSE. */
  | { readonly kind: 'refused'; readonly address: string; readonly code: string }
  | { readonly kind: 'no_address' }

/**
 * Finds the addresses to listen on, all with one port. `localhost` means both loopback addresses: another user of this machine
 * could otherwise listen on the other one and impersonate this server.
 */
export async function planListen(hosts: readonly string[], wanted: number): Promise<ListenPlan> {
  const listen: string[] = []
  let port = wanted
  for (const host of hosts) {
    const found = await probe(host, port)
    if ('port' in found) {
      port = found.port
      listen.push(formatAddress(host, port))
    } else if (!NO_SUCH_ADDRESS.has(found.code))
      return { kind: 'refused', address: formatAddress(host, port), code: found.code }
  }
  return listen.length === 0 ? { kind: 'no_address' } : { kind: 'free', port, listen }
}

/** Explains why an address is refused. */
export function explainListenCode(code: string): string {
  if (code === 'EADDRINUSE') return 'the port is in use'
  return code === 'EACCES' ? 'ports below 1024 need root' : code
}

/** Like `planListen`, but throws `conflict` when nothing can listen. */
export async function chooseAddresses(
  hosts: readonly string[],
  wanted: number,
): Promise<{ readonly port: number; readonly listen: readonly string[] }> {
  const plan = await planListen(hosts, wanted)
  switch (plan.kind) {
    case 'free':
      return plan
    case 'refused':
      throw new SandwireError(
        'conflict',
        `Cannot listen on ${plan.address}: ${explainListenCode(plan.code)}\nhint: choose another port with --port, or 0 for a free one`,
      )
    case 'no_address':
      throw new SandwireError('conflict', `Cannot listen: this machine has no address ${hosts.join(' or ')}`)
  }
}

/** URLs and host names of this server. */
export interface ServerNames {
  /** The URL to print. */
  readonly url: string
  /** Where this machine's user signs in. */
  readonly pageUrl: string
  /** Origins of its own pages, the public one first. */
  readonly origins: readonly [string, ...string[]]
  /** Where the local user signs in and guests get their cookie; absent: at every origin. */
  readonly privateOrigins?: { readonly owner: string; readonly guests: string }
  /** Host headers it answers to. */
  readonly hosts: readonly string[]
}

/**
 * Names of a server that listens on a port: its public origin, if any, and loopback. Cookies are shared by all ports of a host,
 * and `localhost` has many; so the local user signs in under a random name below `localhost` that no other page knows. Guests have
 * another such name, because share links reveal it.
 */
export function planServerNames(
  { mode, publicOrigin, tls }: Pick<ListenSettings, 'mode' | 'publicOrigin' | 'tls'>,
  { port, pageName }: { readonly port: number; readonly pageName: string },
): ServerNames {
  const scheme = tls === undefined ? 'http' : 'https'
  const loopback = ['localhost', '127.0.0.1', '[::1]'].map((name) => `${name}:${port}`)
  const first = publicOrigin ?? `${scheme}://localhost:${port}`
  // In open mode, loopback origins belong to pages on the machines of other users.
  const others = mode === 'open' ? [] : loopback.map((host) => `${scheme}://${host}`)
  const hosts = publicOrigin === undefined ? loopback : [new URL(publicOrigin).host, ...loopback]
  const hasPageName = mode === 'local' && publicOrigin === undefined && tls === undefined
  const names = hasPageName ? [pageName, guestPageName(pageName)] : []
  const privateHosts = names.map((name) => `${name}.localhost:${port}`)
  const [owner, guests] = privateHosts.map((host) => `${scheme}://${host}`)
  const privateOrigins = owner === undefined || guests === undefined ? undefined : { owner, guests }
  return {
    url: first,
    pageUrl: owner ?? first,
    origins: [
      first,
      ...others.filter((origin) => origin !== first),
      ...(privateOrigins === undefined ? [] : [privateOrigins.owner, privateOrigins.guests]),
    ],
    ...(privateOrigins !== undefined && { privateOrigins }),
    hosts: [...new Set([...hosts, ...privateHosts])],
  }
}

/** The name of guests' pages: derived, so that it stays the same, by a hash, so that it does not reveal the owner's. */
function guestPageName(pageName: string): string {
  return `sandwire-${createHash('sha256').update(`guests of ${pageName}`).digest('hex').slice(0, 20)}`
}

/** What to do about a proxy whose header is not configured. */
export const PROXY_NOTICE =
  'Behind a proxy, all clients share the limits of one address: let it set X-Forwarded-For, and set SANDWIRE_CLIENT_ADDRESS_HEADER=X-Forwarded-For'

/** True when the public origin is not one that this server serves itself, so that a proxy does. */
export function isBehindProxy(
  { publicOrigin, tls }: Pick<ListenSettings, 'publicOrigin' | 'tls'>,
  port: number,
): boolean {
  if (publicOrigin === undefined) return false
  const { protocol, port: publicPort } = new URL(publicOrigin)
  const isSecure = protocol === 'https:'
  return isSecure !== (tls !== undefined) || Number(publicPort || (isSecure ? 443 : 80)) !== port
}
