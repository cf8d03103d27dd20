import { SandwireError } from '@sandwire/protocol'
import type { ProxyRoute } from './route.ts'

/** Longest query: a path of 4,096 bytes, all of them percent-encoded. sandboxd accepts a request head of 16 KiB. */
const MAX_QUERY_CHARS = 13_000
/** Characters of a parameter name that are quoted in an error. */
const MAX_NAME_CHARS = 60

function refuse(name: string, problem: string): SandwireError {
  const shown = name.replace(/\p{C}/gu, '').slice(0, MAX_NAME_CHARS)
  return new SandwireError('bad_request', `Cannot use parameter "${shown}": ${problem}`)
}

export interface ProxyQuery {
  /** Sandbox named by the query; only the compat API has this parameter. */
  readonly sandbox: string | undefined
  /** The other parameters, byte for byte: decoding a path would lose bytes that are not UTF-8. */
  readonly rest: string
}

/**
 * Splits a raw query and validates the parameter names. They are compared without decoding, so that control and sandboxd
 * never read the same query differently.
 */
export function splitQuery(
  { parameters, repeatable, api }: Pick<ProxyRoute, 'parameters' | 'repeatable' | 'api'>,
  search: string,
): ProxyQuery {
  if (search.length > MAX_QUERY_CHARS)
    throw new SandwireError('bad_request', `Cannot use the query: more than ${MAX_QUERY_CHARS} characters`)
  const pairs = search
    .replace(/^\?/, '')
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => ({ pair, name: pair.split('=', 1)[0] ?? '' }))
  const seen = new Set<string>()
  for (const { name } of pairs) {
    const isSandbox = name === 'sandbox' && api === 'compat'
    if (!isSandbox && !Object.hasOwn(parameters, name)) throw refuse(name, 'unknown')
    if (seen.has(name) && !repeatable.includes(name)) throw refuse(name, 'given twice')
    seen.add(name)
  }
  const [sandbox] = pairs.filter(({ name }) => name === 'sandbox')
  const rest = pairs.filter(({ name }) => name !== 'sandbox').map(({ pair }) => pair)
  return { sandbox: sandbox?.pair.slice('sandbox='.length), rest: rest.join('&') }
}
