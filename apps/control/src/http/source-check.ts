import { SandwireError } from '@sandwire/protocol'

export interface SourceSettings {
  readonly hosts: readonly string[]
  readonly publicOrigins: readonly string[]
}

/** Whether the request names an origin, and it is one of ours to the letter. */
export function hasListedOrigin(headers: Headers, { publicOrigins }: SourceSettings): boolean {
  const origin = headers.get('origin')
  // Exact text, so that no other spelling, port, scheme, list of origins or `null` is one of ours.
  return origin !== null && publicOrigins.includes(origin)
}

/**
 * Refuses requests that were meant for another host (a rebound name) or come from a page of another origin. Both are
 * read from the request itself; nothing that a proxy could have added is believed.
 */
export function checkSource(headers: Headers, settings: SourceSettings): SandwireError | undefined {
  const host = headers.get('host')
  if (host === null || !settings.hosts.includes(host.toLowerCase()))
    return new SandwireError('host_refused', 'Cannot answer for this host')
  if (headers.get('origin') !== null && !hasListedOrigin(headers, settings))
    return new SandwireError('origin_refused', 'Cannot serve this origin')
  return undefined
}
