import { fromBase64Url, toBase64Url } from '@sandwire/bytes'
import { sandboxIdOf, sandboxIdOfRun, type SessionKey } from '@sandwire/internal-api'
import { z } from 'zod'

/** First part of every token: its kind and version. */
const KIND = 'swt1'
/** Separates these tokens from others made with the same key. */
const AUDIENCE = 'sandwire:attach'
const MAX_TOKEN_CHARS = 2048
/** Random nonces of AES-GCM are safe for 2^32 tokens per key. */
const NONCE_BYTES = 12

/** Kinds of sessions; `claude`: of `/ws/claude-stream`. */
export const SESSION_KINDS = ['pipe', 'pty', 'claude'] as const
export type SessionKind = (typeof SESSION_KINDS)[number]

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

export type SessionClaims = z.infer<typeof claimsSchema>
/** The sandbox of a session, or of a run, which is a session of kind `claude`. */
function workspaceOf(session: string): string | undefined {
  return sandboxIdOf(session) ?? sandboxIdOfRun(session)
}

/** The session and the account that a token is issued for. */
export type SessionBinding = Pick<SessionClaims, 'session' | 'kind' | 'user'>

/** Opaque, short-lived names of sessions, each valid for one account. They identify a session and grant nothing. */
export interface SessionTokens {
  mint(binding: SessionBinding, nowMs: number): Promise<string>
  /** The session of a valid token of this account, of one of these kinds, by default of any; undefined for anything else. */
  read(
    token: string,
    user: string,
    nowMs: number,
    kinds?: readonly SessionKind[],
  ): Promise<string | undefined>
}

/** True if a text has the prefix of a session token. */
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

/** The plain prefix of a token; authenticated, so that a token cannot be relabeled with another key id. */
function prefixOf(kid: string): Uint8Array {
  return new TextEncoder().encode(`${KIND}.${kid}`)
}

async function decrypt(key: CryptoKey, kid: string, encrypted: Uint8Array<ArrayBuffer>): Promise<unknown> {
  const iv = encrypted.subarray(0, NONCE_BYTES)
  const cipher = { name: 'AES-GCM', iv, additionalData: prefixOf(kid) }
  try {
    const plain = await crypto.subtle.decrypt(cipher, key, encrypted.subarray(NONCE_BYTES))
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(plain))
  } catch {
    // Not encrypted with this key, or modified.
    return undefined
  }
}

export interface SessionTokenOptions {
  /** Provider of this server's sandboxes; tokens of another one are invalid. */
  readonly provider: string
  readonly lifeMs: number
  readonly random: (bytes: Uint8Array<ArrayBuffer>) => void
}

/**
 * Imports the keys: the first one encrypts new tokens, all of them decrypt. AES-GCM hides and authenticates the claims
 * in one step.
 */
export async function openSessionTokens(
  keys: readonly [SessionKey, ...SessionKey[]],
  { provider, lifeMs, random }: SessionTokenOptions,
): Promise<SessionTokens> {
  const imported = new Map<string, CryptoKey>()
  for (const key of keys) imported.set(key.kid, await deriveKey(key))
  const [{ kid }] = keys
  return {
    async mint({ session, kind, user }, nowMs) {
      const key = imported.get(kid)
      if (key === undefined) throw new Error('The first key was not imported')
      const claims: SessionClaims = {
        aud: AUDIENCE,
        provider,
        session,
        kind,
        user,
        workspace: workspaceOf(session) ?? '',
        issued: nowMs,
        expires: nowMs + lifeMs,
      }
      const iv = new Uint8Array(NONCE_BYTES)
      random(iv)
      const plain = new TextEncoder().encode(JSON.stringify(claims))
      const cipher = { name: 'AES-GCM', iv, additionalData: prefixOf(kid) }
      const encrypted = new Uint8Array(await crypto.subtle.encrypt(cipher, key, plain))
      const bytes = new Uint8Array(iv.length + encrypted.length)
      bytes.set(iv)
      bytes.set(encrypted, iv.length)
      return `${KIND}.${kid}.${toBase64Url(bytes)}`
    },
    async read(token, user, nowMs, kinds = SESSION_KINDS) {
      if (token.length > MAX_TOKEN_CHARS) return undefined
      const [kind, name, body, ...rest] = token.split('.')
      const key = imported.get(name ?? '')
      const encrypted = fromBase64Url(body ?? '')
      if (kind !== KIND || name === undefined || rest.length > 0) return undefined
      if (key === undefined || encrypted === undefined) return undefined
      const claims = claimsSchema.safeParse(await decrypt(key, name, encrypted))
      if (!claims.success) return undefined
      const { session, workspace, expires, issued, user: owner, provider: origin } = claims.data
      if (!kinds.includes(claims.data.kind)) return undefined
      const isNow = nowMs < expires && expires - issued <= lifeMs
      return isNow && owner === user && origin === provider && workspaceOf(session) === workspace
        ? session
        : undefined
    },
  }
}
