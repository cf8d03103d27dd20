import { type InternalClaims, signInternalToken } from '@sandwire/internal-api'
import { fromBase64 } from './bytes.ts'

/** Life of a token: a slow start of the connection fits, a stolen one is soon worthless. */
const TOKEN_LIFE_MS = 30_000

/** Signs requests to sandboxes, one token each. */
export interface Signer {
  /** What sandboxes check the tokens with, as it travels. */
  readonly publicKey: string
  sign(claims: Omit<InternalClaims, 'issuedMs' | 'expiresMs'>, nowMs: number): Promise<string>
}

export async function openSigner(pkcs8Base64: string): Promise<Signer> {
  const key = await crypto.subtle.importKey('pkcs8', fromBase64(pkcs8Base64), 'Ed25519', true, ['sign'])
  // The public half is in the private key; a JWK is the one export that shows it.
  const jwk = await crypto.subtle.exportKey('jwk', key)
  if (!('x' in jwk) || typeof jwk.x !== 'string') throw new Error('The signing key has no public half')
  return {
    publicKey: jwk.x,
    sign: (claims, nowMs) =>
      signInternalToken(key, { ...claims, issuedMs: nowMs, expiresMs: nowMs + TOKEN_LIFE_MS }),
  }
}
