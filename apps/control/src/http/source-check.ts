import { SandwireError } from '@sandwire/protocol'
import { hasTicket } from '../auth/ticket.ts'
import { readUpgrade } from './upgrade.ts'

export interface SourceSettings {
  readonly hosts: readonly string[]
  readonly publicOrigins: readonly string[]
  /** Origins of other people's pages, which open terminals with a ticket and do nothing else here. */
  readonly embedOrigins: readonly string[]
}

/** The routes that a page of another origin can use: `/attach` and `/terminal/:session`. */
const EMBEDDED_PATH = /^\/(?:attach|terminal\/[^/]+)$/

/** Whether the request names an origin, and it is one of ours to the letter. */
export function hasListedOrigin(headers: Headers, { publicOrigins }: SourceSettings): boolean {
  const origin = headers.get('origin')
  // Exact text, so that no other spelling, port, scheme, list of origins or `null` is one of ours.
  return origin !== null && publicOrigins.includes(origin)
}

/**
 * Whether a page that the operator lists opens a terminal with a ticket. Without one it is a stranger like any other: what its
 * browser adds on its own, such as a cookie of ours, says nothing about what its server was allowed.
 */
function isEmbedded(request: Request, { embedOrigins }: SourceSettings): boolean {
  const origin = request.headers.get('origin')
  return (
    origin !== null &&
    embedOrigins.includes(origin) &&
    EMBEDDED_PATH.test(new URL(request.url).pathname) &&
    readUpgrade(request).isUpgrade &&
    hasTicket(request.headers)
  )
}

/**
 * Refuses requests that were meant for another host (a rebound name) or come from a page of another origin. Both are
 * read from the request itself; nothing that a proxy could have added is believed.
 */
export function checkSource(request: Request, settings: SourceSettings): SandwireError | undefined {
  const { headers } = request
  const host = headers.get('host')
  if (host === null || !settings.hosts.includes(host.toLowerCase()))
    return new SandwireError('host_refused', 'Cannot answer for this host')
  const isOurs = headers.get('origin') === null || hasListedOrigin(headers, settings)
  if (!isOurs && !isEmbedded(request, settings))
    return new SandwireError('origin_refused', 'Cannot serve this origin')
  return undefined
}
