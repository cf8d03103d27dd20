import { lookup } from 'node:dns/promises'
import type { IssuerConfig } from '@sandwire/operator-settings'
import type { Configuration } from '../configuration.ts'

/** An issuer that takes longer keeps people waiting at the door. */
const ANSWER_TIMEOUT_MS = 5_000
/** Tokens are taken for good with this much difference between two clocks. */
const MAX_SKEW_MS = 60_000

/** A line of what was found about how people come in, and whether it will work. */
export interface IdentityCheck {
  readonly line: string
  readonly isGood: boolean
}

/** What is stopRequested of the world outside. */
export interface IdentityProbes {
  readonly fetchUrl: (url: string) => Promise<Response>
  readonly resolveName: (host: string) => Promise<readonly string[]>
  readonly nowMs: () => number
}

/** Probes of this machine; `authorities` are believed besides those that everybody believes. */
export function openIdentityProbes(authorities: string | undefined): IdentityProbes {
  return {
    fetchUrl: (url) =>
      fetch(url, {
        redirect: 'manual',
        signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
        ...(authorities !== undefined && { tls: { ca: authorities } }),
      }),
    resolveName: async (host) => (await lookup(host, { all: true })).map(({ address }) => address),
    nowMs: () => Date.now(),
  }
}

/** Where an issuer must answer for tokens to be checked: at one of these. */
function discoveryUrls({ issuer, endpoints }: IssuerConfig): readonly [string, ...string[]] {
  if (endpoints.jwks !== undefined) return [endpoints.jwks]
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ]
}

/** The first good answer, or the last one. */
async function fetchFirst(
  urls: readonly string[],
  { fetchUrl }: IdentityProbes,
): Promise<Response | undefined> {
  let response: Response | undefined
  for (const url of urls) {
    response = await fetchUrl(url)
    await response.body?.cancel()
    if (response.status === 200) break
  }
  return response
}

function describeSkew(date: string | null, nowMs: number): IdentityCheck {
  const theirsMs = Date.parse(date ?? '')
  if (Number.isNaN(theirsMs)) return { line: 'it does not notify the time', isGood: true }
  // Its clock is told in whole seconds.
  const skewMs = Math.max(0, Math.abs(nowMs - theirsMs) - 1000)
  const seconds = Math.round(skewMs / 1000)
  return skewMs <= MAX_SKEW_MS
    ? { line: `clocks differ by ${seconds} s`, isGood: true }
    : {
        line: `clocks differ by ${seconds} s, so good tokens are refused: set this machine's clock`,
        isGood: false,
      }
}

async function examineIssuer(config: IssuerConfig, probes: IdentityProbes): Promise<IdentityCheck> {
  const urls = discoveryUrls(config)
  const say = (line: string, isGood: boolean): IdentityCheck => ({
    line: `${config.name}: ${line}`,
    isGood,
  })
  try {
    const response = await fetchFirst(urls, probes)
    if (response?.status !== 200)
      return say(`${urls[0]} answers ${response?.status}, so nobody can sign in there`, false)
    const skew = describeSkew(response.headers.get('date'), probes.nowMs())
    return say(`result at ${config.issuer}, ${skew.line}`, skew.isGood)
  } catch {
    return say(`${urls[0]} does not answer, so nobody can sign in there`, false)
  }
}

async function examineName(origin: string, { resolveName }: IdentityProbes): Promise<IdentityCheck> {
  const host = new URL(origin).hostname.replace(/^\[(.*)\]$/, '$1')
  try {
    const [address] = await resolveName(host)
    if (address !== undefined) return { line: `people use ${origin} (${address} from here)`, isGood: true }
  } catch {
    // No such name, which the line below says.
  }
  return { line: `people use ${origin}, a name that this machine does not find`, isGood: false }
}

/** Whether people can come in as the settings say. */
export async function checkIdentity(
  { issuers, publicOrigin, mode, secrets }: Configuration,
  probes: IdentityProbes,
): Promise<readonly IdentityCheck[]> {
  const found = await Promise.all([
    ...issuers.map((issuer) => examineIssuer(issuer, probes)),
    ...(publicOrigin === undefined ? [] : [examineName(publicOrigin, probes)]),
  ])
  const known = [
    ...(mode === 'local' ? ["this machine's user, by the local token"] : []),
    ...(secrets.jwtSecret === undefined ? [] : ['services, by tokens of JWT_SECRET']),
    ...(secrets.apiToken === undefined ? [] : ['one service, by API_TOKEN']),
  ]
  return [...known.map((line) => ({ line, isGood: true })), ...found]
}
