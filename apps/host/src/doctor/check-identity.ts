import { lookup } from 'node:dns/promises'
import type { IssuerConfig } from '@sandwire/operator-settings'
import type { Configuration } from '../configuration.ts'

/** A slower issuer would delay every sign-in. */
const ANSWER_TIMEOUT_MS = 5_000
/** Clock skew that token verification tolerates. */
const MAX_SKEW_MS = 60_000

/** Result of checking one way to sign in. */
export interface IdentityCheck {
  readonly line: string
  readonly isGood: boolean
}

/** Network access of the checks; replaced in tests. */
export interface IdentityProbes {
  readonly fetchUrl: (url: string) => Promise<Response>
  readonly resolveName: (host: string) => Promise<readonly string[]>
  readonly nowMs: () => number
}

/** Real network access; `authorities` are trusted in addition to the system's. */
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

/** URLs of an issuer's keys or metadata, of which one must answer. */
function discoveryUrls({ issuer, endpoints }: IssuerConfig): readonly [string, ...string[]] {
  if (endpoints.jwks !== undefined) return [endpoints.jwks]
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ]
}

/** The first response with status 200, or the last response. */
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
  // The Date header has whole seconds.
  const skewMs = Math.max(0, Math.abs(nowMs - theirsMs) - 1000)
  const seconds = Math.round(skewMs / 1000)
  return skewMs <= MAX_SKEW_MS
    ? { line: `clocks differ by ${seconds} s`, isGood: true }
    : {
        line: `clocks differ by ${seconds} s, so valid tokens are rejected: correct this machine's clock`,
        isGood: false,
      }
}

async function examineIssuer(config: IssuerConfig, probes: IdentityProbes): Promise<IdentityCheck> {
  const urls = discoveryUrls(config)
  const check = (line: string, isGood: boolean): IdentityCheck => ({
    line: `${config.name}: ${line}`,
    isGood,
  })
  try {
    const response = await fetchFirst(urls, probes)
    if (response?.status !== 200)
      return check(`${urls[0]} answers ${response?.status}: signing in with it does not work`, false)
    const skew = describeSkew(response.headers.get('date'), probes.nowMs())
    return check(`reachable at ${config.issuer}, ${skew.line}`, skew.isGood)
  } catch {
    return check(`${urls[0]} does not answer: signing in with it does not work`, false)
  }
}

async function examineName(origin: string, { resolveName }: IdentityProbes): Promise<IdentityCheck> {
  const host = new URL(origin).hostname.replace(/^\[(.*)\]$/, '$1')
  try {
    const [address] = await resolveName(host)
    if (address !== undefined) return { line: `public URL ${origin} (resolves to ${address})`, isGood: true }
  } catch {
    // Reported below.
  }
  return { line: `public URL ${origin}: this machine cannot resolve the name`, isGood: false }
}

/** Checks every configured way to sign in. */
export async function checkIdentity(
  { issuers, publicOrigin, mode, secrets }: Configuration,
  probes: IdentityProbes,
): Promise<readonly IdentityCheck[]> {
  const found = await Promise.all([
    ...issuers.map((issuer) => examineIssuer(issuer, probes)),
    ...(publicOrigin === undefined ? [] : [examineName(publicOrigin, probes)]),
  ])
  const known = [
    ...(mode === 'local' ? ['the local user, with the local token'] : []),
    ...(secrets.jwtSecret === undefined ? [] : ['services, with tokens signed by JWT_SECRET']),
    ...(secrets.apiToken === undefined ? [] : ['one service, with API_TOKEN']),
  ]
  return [...known.map((line) => ({ line, isGood: true })), ...found]
}
