import type { IssuerConfig } from '@sandwire/operator-settings'
import { isEqualInConstantTime } from '../bytes.ts'
import { notAccepted } from './authenticator.ts'
import { audiencesOf, checkTimes, textClaim } from './claims.ts'
import type { IssuerKeys } from './issuer-keys.ts'
import { type Members, readJws, readMembers, verifyJws } from './jws.ts'

export interface IdTokenExpectation {
  readonly config: IssuerConfig
  readonly keys: Pick<IssuerKeys, 'find'>
  readonly clientId: string
  /** Sent along when this very sign-in began. */
  readonly nonce: string
  readonly nowMs: number
}

/** The claims of an ID token that was made by this issuer, for our client and for this sign-in; throws for any other. */
export async function checkIdToken(token: string, expected: IdTokenExpectation): Promise<Members> {
  const { config, keys, clientId, nonce, nowMs } = expected
  const jws = readJws(token)
  const claims = readMembers(jws.payload)
  if (claims === undefined) throw notAccepted('the ID token is malformed')
  if (claims.get('iss') !== config.issuer) throw notAccepted('the ID token is of another issuer')
  const audiences = audiencesOf(claims)
  const party = textClaim(claims, 'azp')
  // One that is meant for several says which of them asked for it.
  const isForUs = party === undefined ? audiences.length === 1 : party === clientId
  if (!audiences.includes(clientId) || !isForUs) throw notAccepted('the ID token is meant for somebody else')
  checkTimes(claims, nowMs)
  if (textClaim(claims, 'sub') === undefined) throw notAccepted('the ID token does not say whose it is')
  if (!isEqualInConstantTime(textClaim(claims, 'nonce') ?? '', nonce))
    throw notAccepted('the ID token is of another sign-in')
  await verifyJws(jws, config.algorithms, (header) => keys.find(header))
  return claims
}
