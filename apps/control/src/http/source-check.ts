import { SandwireError } from '@sandwire/protocol'
import type { MiddlewareHandler } from 'hono'
import { hasSignInCookie } from '../auth/browser-sign-in.ts'
import { hasTicket } from '../auth/ticket.ts'
import { copyCfProperties } from './client-address.ts'
import { isWebSocketPath, readUpgrade } from './upgrade.ts'

export interface SourceSettings {
  readonly hosts: readonly string[]
  readonly publicOrigins: readonly string[]
  /** The only origins at which the owner of a local server signs in with a code, and guests get a cookie. */
  readonly privateOrigins?: { readonly owner: string; readonly guests: string }
  /** Origins of other sites, which may open terminals with a ticket and nothing else. */
  readonly embedOrigins: readonly string[]
  /** Origins of other sites, whose pages may use conversations with a token, or with a service's cookie. */
  readonly conversationOrigins: readonly string[]
}

/** Routes that pages of embed origins may use: `/attach` and `/terminal/:session`. */
const EMBEDDED_PATH = /^\/(?:attach|terminal\/[^/]+)$/
/** Parameter for the bearer token of clients that cannot set headers. */
const TOKEN_PARAMETER = 'token'
const MAX_TOKEN_CHARS = 8 * 1024

/** True if the request's origin is one of the server's public origins. */
export function hasPublicOrigin(headers: Headers, { publicOrigins }: SourceSettings): boolean {
  const origin = headers.get('origin')
  // Compared as text: no other spelling, port, scheme, list of origins or `null` matches.
  return origin !== null && publicOrigins.includes(origin)
}

/** True if the request comes from a page where this user may get a cookie: of the private origin, if there is one. */
export function mayGetCookie(
  headers: Headers,
  user: 'owner' | 'guests',
  source: Pick<SourceSettings, 'publicOrigins' | 'privateOrigins'>,
): boolean {
  const allowed = source.privateOrigins === undefined ? source.publicOrigins : [source.privateOrigins[user]]
  const origin = headers.get('origin')
  // The cookie belongs to the requested host.
  return (
    origin !== null &&
    allowed.includes(origin) &&
    (source.privateOrigins === undefined || new URL(origin).host === headers.get('host')?.toLowerCase())
  )
}

/** True if a page of an embed origin opens a terminal with a ticket. Its other credentials, such as cookies, do not count. */
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

/** Routes that pages of conversation origins may use. */
const CONVERSATION_PATH = /^\/(?:ws\/v2|health|api\/conversations(?:\/[^]*)?|files\/[^]*|logs\/[^]*)$/

/** True if the request comes from a page of another site that may use conversations, and is for one of their routes. */
export function isFromConversationPage(
  request: Request,
  { conversationOrigins }: Pick<SourceSettings, 'conversationOrigins'>,
): boolean {
  const origin = request.headers.get('origin')
  return (
    origin !== null &&
    conversationOrigins.includes(origin) &&
    CONVERSATION_PATH.test(new URL(request.url).pathname)
  )
}

/** Returns the error for a request to another host (DNS rebinding) or from a page of another origin. Trusts no proxy header. */
export function checkSource(request: Request, settings: SourceSettings): SandwireError | undefined {
  const { headers } = request
  const host = headers.get('host')
  if (host === null || !settings.hosts.includes(host.toLowerCase()))
    return new SandwireError('host_refused', 'This host name is not served here')
  // Without an Origin header it is not a cross-origin request of a browser.
  const hasAllowedOrigin = headers.get('origin') === null || hasPublicOrigin(headers, settings)
  if (!hasAllowedOrigin && !isEmbedded(request, settings) && !isFromConversationPage(request, settings))
    return new SandwireError('origin_refused', 'Requests from this origin are not allowed')
  return undefined
}

function findTokenProblem(request: Request, url: URL): string | undefined {
  const { headers } = request
  // Every request but a browser's WebSocket upgrade can set a header.
  if (!isWebSocketPath(url.pathname) || !readUpgrade(request).isUpgrade) return 'only allowed when attaching'
  // Two credentials could identify two accounts.
  if (headers.has('authorization') || hasSignInCookie(headers) || hasTicket(headers))
    return 'another credential was sent'
  const [value = '', ...more] = url.searchParams.getAll(TOKEN_PARAMETER)
  if (more.length > 0) return 'given twice'
  return /^[\x21-\x7e]+$/.test(value) && value.length <= MAX_TOKEN_CHARS ? undefined : 'not a token'
}

/**
 * Moves a token from the URL to the `Authorization` header; undefined if the URL has none. Off by default, because URLs end up
 * in histories and logs.
 */
function moveTokenFromUrl(request: Request, isEnabled: boolean): Request | undefined {
  const url = new URL(request.url)
  if (!url.searchParams.has(TOKEN_PARAMETER)) return undefined
  const problem = isEnabled ? findTokenProblem(request, url) : 'send the token in a header'
  if (problem !== undefined)
    throw new SandwireError('bad_request', `Cannot use parameter "${TOKEN_PARAMETER}": ${problem}`)
  const headers = new Headers(request.headers)
  headers.set('authorization', `Bearer ${url.searchParams.get(TOKEN_PARAMETER) ?? ''}`)
  url.searchParams.delete(TOKEN_PARAMETER)
  return new Request(url, { ...copyCfProperties(request), method: request.method, headers })
}

/** The first check of a request: host, origin, and no credential in its URL. */
export function checkRequestSource(
  settings: SourceSettings & { readonly tokenInUrl: boolean },
): MiddlewareHandler {
  return async (context, next) => {
    const refusal = checkSource(context.req.raw, settings)
    if (refusal !== undefined) throw refusal
    const moved = moveTokenFromUrl(context.req.raw, settings.tokenInUrl)
    if (moved !== undefined) context.req.raw = moved
    await next()
  }
}
