import { UsageError } from '../errors/errors.ts'

/** An address, or its problem. Messages do not repeat an address that may contain a secret. */
export type ParsedAddress =
  | { readonly isOk: true; readonly url: URL }
  | { readonly isOk: false; readonly message: string; readonly hint: string }

const PROTOCOLS = new Set(['http:', 'https:', 'ws:', 'wss:'])
const SCHEME = /^(?:https?|wss?):\/\//i
const EXAMPLE_HINT = 'for example http://127.0.0.1:8080'
const SECRET_PARAMETERS = ['token', 'access_token', 'ticket', 'authorization']
const TOKEN_HINT = 'addresses end up in logs and shell history; use --token-file FILE or SBX_TOKEN'

function invalid(message: string, hint: string): ParsedAddress {
  return { isOk: false, message, hint }
}

/** Parses the address of a server; the default path is `/attach`. */
export function parseAddress(text: string): ParsedAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined && SCHEME.test(text))
    return invalid('The host or port of the address is missing or malformed', EXAMPLE_HINT)
  if (url === undefined || !PROTOCOLS.has(url.protocol))
    return invalid('The address must begin with http://, https://, ws:// or wss://', EXAMPLE_HINT)
  if (url.username !== '' || url.password !== '')
    return invalid('The address contains a user name or password', TOKEN_HINT)
  if (SECRET_PARAMETERS.some((name) => url.searchParams.has(name)))
    return invalid('The address contains a token', TOKEN_HINT)
  url.hash = ''
  if (url.pathname === '/') url.pathname = '/attach'
  return { isOk: true, url }
}

/** A share link: its server, and the secret to redeem there. */
export interface ShareLink {
  readonly origin: string
  /** The fragment of the link; sent in request bodies only. */
  readonly secret: string
}

const SECRET = /^[A-Za-z0-9._-]{20,512}$/

/** Parses a share link. Throws `UsageError`, without repeating the link. */
export function parseShareLink(text: string): ShareLink {
  const trimmed = text.trim()
  const url = URL.canParse(trimmed) ? new URL(trimmed) : undefined
  const secret = url?.hash.slice(1) ?? ''
  if (url === undefined || url.pathname !== '/join' || !SECRET.test(secret))
    throw new UsageError('This is not a share link', 'share links look like https://HOST/join#…')
  // The names of a local server below localhost are for browsers, and few systems resolve them.
  if (url.protocol === 'http:' && url.hostname.endsWith('.localhost')) url.hostname = 'localhost'
  if (!isSecureUrl(url))
    throw new UsageError('Cannot use this link: it is neither https nor for this machine')
  return { origin: url.origin, secret }
}

/** Hosts that never leave this machine. */
const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

/** True for HTTPS, and for plain HTTP to this machine: credentials may be sent there. */
export function isSecureUrl(text: string | URL): boolean {
  if (typeof text === 'string' && !URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  if (username !== '' || password !== '') return false
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.has(hostname))
}

/** A web address that is safe to print; undefined if it is not one. */
export function webAddress(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  // Parsing escapes control characters and everything beyond ASCII.
  return isWeb && url.username === '' && url.password === '' && /^[\x21-\x7e]{1,2048}$/.test(url.href)
    ? url.href
    : undefined
}

const NO_PROXY_NAMES = 'localhost,127.0.0.1,::1'

/**
 * Makes requests to this machine bypass a proxy of the environment, which would see the token. Bun's `fetch` reads these
 * variables for every request and has no exception of its own for loopback (1.4).
 */
export function bypassProxyForLoopback(env: Record<string, string | undefined>): void {
  const given = env['no_proxy'] ?? env['NO_PROXY'] ?? ''
  const names = given === '' ? NO_PROXY_NAMES : `${given},${NO_PROXY_NAMES}`
  env['no_proxy'] = names
  env['NO_PROXY'] = names
}
