import { type IpAddress, parseIpAddress } from './ip-address.ts'

/** A host that a sandbox wants to connect to. Parsed once; later checks use this, not the text. */
export type Host =
  /** Canonical name: lower case, no trailing dot, at least two labels. */
  { readonly kind: 'name'; readonly name: string } | { readonly kind: 'address'; readonly address: IpAddress }

export interface Target {
  readonly host: Host
  readonly port: number
}

/** The target of a proxied request. */
export interface RequestTarget extends Target {
  /** Path and query, beginning with a slash. */
  readonly path: string
  readonly scheme: Scheme
}

export type Scheme = 'http' | 'https'

const MAX_NAME_CHARS = 253
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
/** With a last label like this, programs read the name as an IPv4 address: `0x7f.1`, `10.1`. */
const NUMBER_LABEL = /^([0-9]+|0x[0-9a-f]*)$/
const URL_START = /^(https?):\/\//i
const DEFAULT_PORTS: Readonly<Record<Scheme, number>> = { http: 80, https: 443 }

/** Parses a name. Single labels are refused, because the resolver's search list changes their meaning. */
export function parseName(text: string): string | undefined {
  if (text.length > MAX_NAME_CHARS + 1) return undefined
  const name = (text.endsWith('.') ? text.slice(0, -1) : text).toLowerCase()
  const labels = name.split('.')
  const last = labels.at(-1) ?? ''
  if (name.length > MAX_NAME_CHARS || labels.length < 2 || NUMBER_LABEL.test(last)) return undefined
  return labels.every((label) => LABEL.test(label)) ? name : undefined
}

/** Parses the host of a request: a name, an IPv4 address, or an IPv6 address in brackets. */
export function parseHost(text: string): Host | undefined {
  const isBracketed = text.startsWith('[') && text.endsWith(']')
  const address = parseIpAddress(isBracketed ? text.slice(1, -1) : text)
  if (address !== undefined)
    return isBracketed === (address.bytes.length === 16) ? { kind: 'address', address } : undefined
  const name = parseName(text)
  return name === undefined ? undefined : { kind: 'name', name }
}

/** Parses a port without leading zeros. */
export function parsePort(text: string): number | undefined {
  if (!/^[1-9][0-9]{0,4}$/.test(text)) return undefined
  const port = Number(text)
  return port <= 65_535 ? port : undefined
}

/** Splits `host:port` at the colon after the host; the port is undefined when there is none. */
export function splitAuthority(text: string): { host: string; port: string | undefined } {
  const from = text.startsWith('[') ? text.indexOf(']') : 0
  const at = text.indexOf(':', Math.max(from, 0))
  return at < 0 ? { host: text, port: undefined } : { host: text.slice(0, at), port: text.slice(at + 1) }
}

function parseAuthority(text: string, defaultPort: number | undefined): Target | undefined {
  const parts = splitAuthority(text)
  const host = parseHost(parts.host)
  const port = parts.port === undefined ? defaultPort : parsePort(parts.port)
  return host === undefined || port === undefined ? undefined : { host, port }
}

/** Parses the target of a CONNECT request: `host:port`, both required. */
export function parseConnectTarget(text: string): Target | undefined {
  return parseAuthority(text, undefined)
}

/** Parses the target of any other request: an address of one of these schemes without user name, password or fragment. */
export function parseRequestTarget(
  text: string,
  schemes: readonly Scheme[] = ['http'],
): RequestTarget | undefined {
  const [start = '', name = ''] = URL_START.exec(text) ?? []
  const scheme = schemes.find((each) => each === name.toLowerCase())
  if (scheme === undefined || text.includes('#')) return undefined
  const rest = text.slice(start.length)
  const end = rest.search(/[/?]/)
  const target = parseAuthority(end < 0 ? rest : rest.slice(0, end), DEFAULT_PORTS[scheme])
  if (target === undefined) return undefined
  const tail = end < 0 ? '' : rest.slice(end)
  return { ...target, path: tail.startsWith('/') ? tail : `/${tail}`, scheme }
}

/** The host for messages and logs, with brackets; contains only characters that the parser accepts. */
export function formatHost(host: Host): string {
  if (host.kind === 'name') return host.name
  return host.address.bytes.length === 16 ? `[${host.address.text}]` : host.address.text
}

/** Host and port, without the default port of the scheme. */
export function formatHostHeader({ host, port, scheme }: Target & { readonly scheme: Scheme }): string {
  return port === DEFAULT_PORTS[scheme] ? formatHost(host) : `${formatHost(host)}:${port}`
}
