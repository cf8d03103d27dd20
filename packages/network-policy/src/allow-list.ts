import { SandwireError } from '@sandwire/protocol'
import { HOST_SETS } from './host-sets.ts'
import { parseHost, parseName, parsePort, formatHost, splitAuthority, type Target } from './target.ts'

/** Ports of an entry without a port. */
const WEB_PORTS: readonly number[] = [80, 443]
const SET_PREFIX = 'set:'
const ANY_PREFIX = '*.'

/** A parsed entry. */
interface Rule {
  /** Canonical host, or the parent of the allowed subdomains. */
  readonly host: string
  readonly isSubdomains: boolean
  readonly ports: readonly number[]
}

/** Whether a target is allowed; distinguishes a host that is listed with other ports. */
export type Listing = 'listed' | 'other_port' | 'not_listed'

function wrong(entry: string): SandwireError {
  const sets = Object.keys(HOST_SETS).join(', ')
  return new SandwireError(
    'bad_request',
    `Cannot use "${entry.replace(/[^\x21-\x7e]/g, '?')}" in an allowlist: it must be a name, *.name, an address, one of these with :port, or set: with one of ${sets}`,
  )
}

function parseRule(entry: string): Rule {
  const isSubdomains = entry.startsWith(ANY_PREFIX)
  const parts = splitAuthority(isSubdomains ? entry.slice(ANY_PREFIX.length) : entry)
  const port = parts.port === undefined ? undefined : parsePort(parts.port)
  const host = isSubdomains ? parseName(parts.host) : canonicalHost(parts.host)
  if (host === undefined || (parts.port !== undefined && port === undefined)) throw wrong(entry)
  return { host, isSubdomains, ports: port === undefined ? WEB_PORTS : [port] }
}

function canonicalHost(text: string): string | undefined {
  const host = parseHost(text)
  return host === undefined ? undefined : formatHost(host)
}

function expand(entry: string): readonly string[] {
  if (!entry.startsWith(SET_PREFIX)) return [entry]
  const name = entry.slice(SET_PREFIX.length)
  const set = Object.hasOwn(HOST_SETS, name) ? HOST_SETS[name] : undefined
  if (set === undefined) throw wrong(entry)
  return set
}

/** True for a valid entry. */
export function isAllowEntry(entry: string): boolean {
  try {
    expand(entry).map(parseRule)
    return true
  } catch {
    // Invalid; the caller reports it.
    return false
  }
}

function isMeant(rule: Rule, { host }: Target): boolean {
  const text = formatHost(host)
  if (!rule.isSubdomains) return text === rule.host
  return host.kind === 'name' && text.endsWith(`.${rule.host}`)
}

/** Hosts and ports that a sandbox may reach. An empty list allows nothing. */
export class AllowList {
  readonly #rules: readonly Rule[]

  /** Throws `bad_request` for an invalid entry. */
  constructor(entries: readonly string[]) {
    this.#rules = entries.flatMap(expand).map(parseRule)
  }

  /** Listed ports other than 80 and 443. */
  get otherPorts(): readonly number[] {
    const ports = this.#rules.flatMap((rule) => rule.ports)
    return [...new Set(ports)].filter((port) => !WEB_PORTS.includes(port))
  }

  find(target: Target): Listing {
    const meant = this.#rules.filter((rule) => isMeant(rule, target))
    if (meant.some((rule) => rule.ports.includes(target.port))) return 'listed'
    return meant.length > 0 ? 'other_port' : 'not_listed'
  }
}
