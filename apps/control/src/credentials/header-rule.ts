import type { CredentialSettings } from '@sandwire/operator-settings'
import type { GatewayGrant } from './grant.ts'
import type { ReadSecret } from './providers.ts'
import { refuseText } from './refusal.ts'

const TIMEOUT_MS = 10 * 60_000
const REQUEST_HEADERS = ['accept', 'content-type', 'if-none-match', 'range', 'user-agent']
const RESPONSE_HEADERS = ['content-length', 'content-range', 'content-type', 'etag', 'last-modified']

/** Handles a request to another host, with the header that the operator's rule adds. */
export async function handleHeaderRule(
  request: Request,
  { host, path, search }: { readonly host: string; readonly path: string; readonly search: string },
  { hosts }: GatewayGrant,
  {
    settings,
    readSecret,
    fetchUpstream,
  }: {
    readonly settings: CredentialSettings
    readonly readSecret: ReadSecret
    readonly fetchUpstream: (url: string, init: RequestInit) => Promise<Response>
  },
): Promise<Response> {
  const rule = settings.hosts.find((each) => each.host === host)
  if (rule === undefined || !hosts.includes(host))
    return refuseText(403, `the run may not use host "${host}"`)
  // Encoded separators would mean another path to some servers.
  if (/%2e|%2f|%5c|\\/i.test(path) || !rule.paths.some((prefix) => path.startsWith(prefix)))
    return refuseText(403, 'the path is not allowed')
  if (!rule.methods.includes(request.method)) return refuseText(405, 'the method is not allowed')
  const secret = readSecret(rule.secret)
  if (secret === undefined) return refuseText(403, `the credential is missing; set ${rule.secret}`)
  const headers = new Headers()
  for (const name of REQUEST_HEADERS) {
    const value = request.headers.get(name)
    if (value !== null) headers.set(name, value)
  }
  headers.set('accept-encoding', 'identity')
  headers.set(rule.header, `${rule.prefix}${secret}`)
  try {
    const response = await fetchUpstream(`${rule.url ?? `https://${host}`}${path}${search}`, {
      method: request.method,
      headers,
      body: request.body,
      redirect: 'manual',
      signal: AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT_MS)]),
    })
    if (response.status >= 300 && response.status < 400 && response.status !== 304)
      return refuseText(502, `"${host}" redirects, which is not followed`)
    const passed = new Headers()
    for (const name of RESPONSE_HEADERS) {
      const value = response.headers.get(name)
      if (value !== null) passed.set(name, value)
    }
    return new Response(response.body, { status: response.status, headers: passed })
  } catch {
    return refuseText(502, `"${host}" does not respond`)
  }
}
