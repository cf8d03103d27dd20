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
