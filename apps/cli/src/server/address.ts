import { UsageError } from '../options/words.ts'

/** An address, or what is wrong with it. The text itself is not repeated where it may hold a secret. */
export type ParsedAddress =
  | { readonly isOk: true; readonly url: URL }
  | { readonly isOk: false; readonly message: string; readonly hint: string }

const PROTOCOLS = new Set(['http:', 'https:', 'ws:', 'wss:'])
const BEGINNING = /^(?:https?|wss?):\/\//i
const LOOK_HINT = 'it looks like http://127.0.0.1:8080'
const SECRET_PARAMETERS = ['token', 'access_token', 'ticket', 'authorization']
const TOKEN_HINT = 'a token in an address ends up in logs and histories: use --token-file FILE or SBX_TOKEN'

function wrong(message: string, hint: string): ParsedAddress {
  return { isOk: false, message, hint }
}

/** Reads the address of a server. */
export function parseAddress(text: string): ParsedAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined && BEGINNING.test(text))
    return wrong('The host or the port of the address is missing or malformed', LOOK_HINT)
  if (url === undefined || !PROTOCOLS.has(url.protocol))
    return wrong('The address must begin with http://, https://, ws:// or wss://', LOOK_HINT)
  if (url.username !== '' || url.password !== '')
    return wrong('The address holds a user name or password', TOKEN_HINT)
  if (SECRET_PARAMETERS.some((name) => url.searchParams.has(name)))
    return wrong('The address holds a token', TOKEN_HINT)
  url.hash = ''
  if (url.pathname === '/') url.pathname = '/attach'
  return { isOk: true, url }
}

/** A link to something shared: where it is, and what to show there. */
export interface ShareLink {
  readonly origin: string
  /** What follows the `#`; it never goes into a URL again. */
  readonly secret: string
}

const SECRET = /^[A-Za-z0-9._-]{20,512}$/

/** Reads a link. Throws `UsageError`, without repeating any of it. */
export function parseShareLink(text: string): ShareLink {
  const word = text.trim()
  const url = URL.canParse(word) ? new URL(word) : undefined
  const secret = url?.hash.slice(1) ?? ''
  if (url === undefined || url.pathname !== '/join' || !SECRET.test(secret))
    throw new UsageError('This is not a link to something shared', 'it looks like https://HOST/join#…')
  if (!isSecureUrl(url)) throw new UsageError('Cannot use this link: it is neither https nor of this machine')
  return { origin: url.origin, secret }
}

/** This machine, by the names and numbers that never leave it. */
const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Credentials may go there: it is HTTPS, or plain HTTP that never leaves this machine. */
export function isSecureUrl(text: string | URL): boolean {
  if (typeof text === 'string' && !URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  if (username !== '' || password !== '') return false
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.has(hostname))
}

/** An address for people to open, spelled so that a terminal shows it and does not obey it; undefined if it is none. */
export function webAddress(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  // Parsing spells every control character and every character beyond ASCII out.
  return isWeb && url.username === '' && url.password === '' && /^[\x21-\x7e]{1,2048}$/.test(url.href)
    ? url.href
    : undefined
}

const NO_PROXY_NAMES = 'localhost,127.0.0.1,::1'

/**
 * Keeps requests to this machine, and the token in them, away from a proxy that the environment names. Bun's `fetch`
 * looks at these variables for every request and has no exception of its own for loopback (1.4).
 */
export function bypassProxyForLoopback(env: Record<string, string | undefined>): void {
  const given = env['no_proxy'] ?? env['NO_PROXY'] ?? ''
  const names = given === '' ? NO_PROXY_NAMES : `${given},${NO_PROXY_NAMES}`
  env['no_proxy'] = names
  env['NO_PROXY'] = names
}
