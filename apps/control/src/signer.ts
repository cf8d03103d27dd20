import { type InternalClaims, signInternalToken } from '@sandwire/internal-api'
import { fromBase64 } from './bytes.ts'

/** Lifetime of a token: long enough for a slow connection, short enough for a stolen token. */
const TOKEN_LIFE_MS = 30_000

/** Signs requests to sandboxes, one token each. */
export interface Signer {
  /** Public key in base64url, for sandboxes to verify the tokens with. */
  readonly publicKey: string
  sign(claims: Omit<InternalClaims, 'issuedMs' | 'expiresMs'>, nowMs: number): Promise<string>
}

export async function openSigner(pkcs8Base64: string): Promise<Signer> {
  const key = await crypto.subtle.importKey('pkcs8', fromBase64(pkcs8Base64), 'Ed25519', true, ['sign'])
  // Only the JWK export of a private key contains the public key.
  const jwk = await crypto.subtle.exportKey('jwk', key)
  if (!('x' in jwk) || typeof jwk.x !== 'string') throw new Error('The signing key has no public key')
  return {
    publicKey: jwk.x,
    sign: (claims, nowMs) =>
      signInternalToken(key, { ...claims, issuedMs: nowMs, expiresMs: nowMs + TOKEN_LIFE_MS }),
  }
}
