import { SandwireError } from '@sandwire/protocol'
import type { GatewayRoute } from './route.ts'

/** Longest query: a path of 4,096 bytes, all of them percent-encoded. The head of a request to sandboxd is 16 KiB. */
const MAX_QUERY_CHARS = 13_000
/** Most of a name that is said back. */
const MAX_NAME_CHARS = 60

function bad(name: string, why: string): SandwireError {
  const shown = name.replace(/\p{C}/gu, '').slice(0, MAX_NAME_CHARS)
  return new SandwireError('bad_request', `Cannot use "${shown}": ${why}`)
}

/** What a query says: for control, and for sandboxd. */
export interface GatewayQuery {
  /** Sandbox that it names. */
  readonly sandbox: string | undefined
  /** The rest, byte for byte as it was sent: what decodes a path would lose the bytes that are no UTF-8. */
  readonly rest: string
}

/**
 * Splits a raw query. Names are compared as they are spelled, so that two spellings are never one parameter for control and
 * another for sandboxd; none is given twice unless the route says so.
 */
export function splitQuery(
  { parameters, repeatable, api }: Pick<GatewayRoute, 'parameters' | 'repeatable' | 'api'>,
  search: string,
): GatewayQuery {
  if (search.length > MAX_QUERY_CHARS)
    throw new SandwireError('bad_request', `Cannot use the query: more than ${MAX_QUERY_CHARS} characters`)
  const pairs = search
    .replace(/^\?/, '')
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => ({ pair, name: pair.split('=', 1)[0] ?? '' }))
  const seen = new Set<string>()
  for (const { name } of pairs) {
    const isOurs = name === 'sandbox' && api === 'compat'
    if (!isOurs && !Object.hasOwn(parameters, name)) throw bad(name, 'unknown')
    if (seen.has(name) && !repeatable.includes(name)) throw bad(name, 'given twice')
    seen.add(name)
  }
  const [ours] = pairs.filter(({ name }) => name === 'sandbox')
  const rest = pairs.filter(({ name }) => name !== 'sandbox').map(({ pair }) => pair)
  return { sandbox: ours?.pair.slice('sandbox='.length), rest: rest.join('&') }
}
