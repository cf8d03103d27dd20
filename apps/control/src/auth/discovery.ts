import type { IssuerConfig } from '@sandwire/operator-settings'
import { askIssuer, type Fetch, isFitEndpoint, issuerAway } from './issuer-fetch.ts'
import { type Members, readMembers } from './jws.ts'

/** Where an issuer's metadata is: as OpenID Connect Discovery has it, then as RFC 8414 has it. */
export function metadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ]
}

/** What an issuer says of itself; throws `issuer_unavailable` when that cannot be found out. */
export async function discover({ name, issuer }: IssuerConfig, fetchUrl: Fetch): Promise<Members> {
  for (const url of metadataUrls(issuer)) {
    const response = await askIssuer(fetchUrl, url)
    if (response === undefined) throw issuerAway(name, 'does not answer')
    if (response.status !== 200) continue
    const metadata = readMembers(new Uint8Array(await response.arrayBuffer()))
    // Without this, one issuer could hand out the keys for another's people.
    if (metadata?.get('issuer') !== issuer) throw issuerAway(name, 'names itself otherwise in its metadata')
    return metadata
  }
  throw issuerAway(name, 'has no metadata')
}

/** An address of the issuer's metadata that may be asked. */
export function endpointOf(metadata: Members, field: string, { name, issuer }: IssuerConfig): string {
  const url = metadata.get(field)
  if (!isFitEndpoint(url, issuer)) throw issuerAway(name, `names no ${field} that can be asked`)
  return url
}
