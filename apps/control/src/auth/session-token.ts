import { fromBase64Url, toBase64Url } from '@sandwire/bytes'
import { sandboxIdOf, type SessionKey } from '@sandwire/internal-api'
import { z } from 'zod'

/** First part of every token, so that one of another kind or version is not taken for one. */
const KIND = 'swt1'
/** What the tokens are for; a token made for anything else with the same key is none of these. */
const AUDIENCE = 'sandwire:attach'
const MAX_TOKEN_CHARS = 2048
/** As AES-GCM wants it: random ones are safe for 2^32 tokens of a key. */
const NONCE_BYTES = 12

/** What runs in a session. */
export const SESSION_KINDS = ['pipe', 'pty', 'chat'] as const

const claimsSchema = z.strictObject({
  aud: z.literal(AUDIENCE),
  provider: z.string(),
  session: z.string(),
  kind: z.enum(SESSION_KINDS),
  user: z.string(),
  workspace: z.string(),
  issued: z.int(),
  expires: z.int(),
})

/** What a token says. */
export type SessionClaims = z.infer<typeof claimsSchema>
/** The session a token is made for, and for whom. */
export type SessionBinding = Pick<SessionClaims, 'provider' | 'session' | 'kind' | 'user'>

/** Names of sessions that say nothing, work for one person and end soon. They lead to a session; they allow nothing. */
export interface SessionTokens {
  mint(binding: SessionBinding, nowMs: number): Promise<string>
  /** The session of a token that is this user's and has not ended; undefined for every other text, whatever is wrong. */
  read(token: string, user: string, nowMs: number): Promise<string | undefined>
}

/** Whether a text was meant as a token and not as an id. */
export function isSessionToken(text: string): boolean {
  return text.startsWith(`${KIND}.`)
}

async function deriveKey({ bytes }: SessionKey): Promise<CryptoKey> {
  const secret = await crypto.subtle.importKey('raw', bytes, 'HKDF', false, ['deriveKey'])
  return crypto.subtle.deriveKey(
    { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(0), info: new TextEncoder().encode(AUDIENCE) },
    secret,
    { name: 'AES-GCM', length: 256 },
    false,
    ['encrypt', 'decrypt'],
  )
}

/** The words before the sealed part, which are sealed along: a token cannot be moved to another key's name. */
function headOf(kid: string): Uint8Array {
  return new TextEncoder().encode(`${KIND}.${kid}`)
}

async function unseal(key: CryptoKey, kid: string, sealed: Uint8Array<ArrayBuffer>): Promise<unknown> {
  const iv = sealed.subarray(0, NONCE_BYTES)
  const cipher = { name: 'AES-GCM', iv, additionalData: headOf(kid) }
  try {
    const plain = await crypto.subtle.decrypt(cipher, key, sealed.subarray(NONCE_BYTES))
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(plain))
  } catch {
    // Not made with this key, or not as it was made: told by the undefined.
    return undefined
  }
}

/**
 * Opens the keys: the first one makes tokens, all of them read them. Tokens are sealed with AES-GCM, which hides and
 * authenticates in one step: what is in them is nobody's business, and there is no second primitive to combine wrongly.
 */
export async function openSessionTokens(
  keys: readonly [SessionKey, ...SessionKey[]],
  { lifeMs, random }: { readonly lifeMs: number; readonly random: (bytes: Uint8Array<ArrayBuffer>) => void },
): Promise<SessionTokens> {
  const opened = new Map<string, CryptoKey>()
  for (const key of keys) opened.set(key.kid, await deriveKey(key))
  const [{ kid }] = keys
  return {
    async mint({ provider, session, kind, user }, nowMs) {
      const key = opened.get(kid)
      if (key === undefined) throw new Error('The first key was not opened')
      const claims: SessionClaims = {
        aud: AUDIENCE,
        provider,
        session,
        kind,
        user,
        workspace: sandboxIdOf(session) ?? '',
        issued: nowMs,
        expires: nowMs + lifeMs,
      }
      const iv = new Uint8Array(NONCE_BYTES)
      random(iv)
      const plain = new TextEncoder().encode(JSON.stringify(claims))
      const cipher = { name: 'AES-GCM', iv, additionalData: headOf(kid) }
      const sealed = new Uint8Array(await crypto.subtle.encrypt(cipher, key, plain))
      const bytes = new Uint8Array(iv.length + sealed.length)
      bytes.set(iv)
      bytes.set(sealed, iv.length)
      return `${KIND}.${kid}.${toBase64Url(bytes)}`
    },
    async read(token, user, nowMs) {
      if (token.length > MAX_TOKEN_CHARS) return undefined
      const [kind, name, body, ...rest] = token.split('.')
      const key = opened.get(name ?? '')
      const sealed = fromBase64Url(body ?? '')
      if (kind !== KIND || name === undefined || rest.length > 0) return undefined
      if (key === undefined || sealed === undefined) return undefined
      const claims = claimsSchema.safeParse(await unseal(key, name, sealed))
      if (!claims.success) return undefined
      const { session, workspace, expires, issued, user: owner } = claims.data
      const isNow = nowMs < expires && expires - issued <= lifeMs
      return isNow && owner === user && sandboxIdOf(session) === workspace ? session : undefined
    },
  }
}
