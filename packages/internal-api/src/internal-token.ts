import { ROLES, SandwireError, schema } from '@sandwire/protocol'
import { fromBase64Url, toBase64Url } from '@sandwire/bytes'
import { isSandboxId } from './ids.ts'

/** First part of every token, so that a token of another kind or version is refused by name. */
const KIND = 'swi1'
/** Longest life of a token. */
export const MAX_TOKEN_LIFE_MS = 60_000
/** How far the clocks of the two sides may differ. */
export const CLOCK_SKEW_MS = 5_000
/** Longer tokens are refused unread. */
const MAX_TOKEN_CHARS = 8 * 1024
/** Longer paths are replaced by their hash: command lines can be long, and request headers are limited. */
const MAX_PLAIN_PATH_CHARS = 512
/** A token is a header, so an environment in it is small. */
const MAX_ENV_ENTRIES = 16
const MAX_ENV_CHARS = 256
/** Settings of an agent may be one variable. */
const MAX_AGENT_ENV_CHARS = 2048

/** What a request may do in the sandbox: act for control itself, or for an account in a role. */
export const AUTHORITIES = ['control', ...ROLES] as const

const agentTuiSchema = schema.record({
  driver: schema.oneOf(['claude', 'acp']),
  /** Path of the program in the sandbox. */
  program: schema.text(256, /^\//),
  /** URL and token of the credential gateway, in the variables that the program reads. */
  env: schema.dictionary(MAX_ENV_ENTRIES, /^[A-Za-z_][A-Za-z0-9_]{0,63}$/, schema.text(MAX_AGENT_ENV_CHARS)),
})
/** The interface of a coding agent in a terminal. */
export type AgentTui = schema.Decoded<typeof agentTuiSchema>

const claimsSchema = schema.record({
  method: schema.oneOf(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']),
  /** Path and query exactly as the request has them, or their hash. */
  path: schema.text(MAX_PLAIN_PATH_CHARS, /^\//),
  sandbox: schema.text(64),
  /** Account the request acts for; create ids and attachments belong to it. */
  identity: schema.text(256),
  /** Name that other attachments see. */
  name: schema.optional(schema.text(128)),
  authority: schema.oneOf(AUTHORITIES),
  /** Role of new attachments that request none; resumed attachments keep theirs. */
  usualRole: schema.optional(schema.oneOf(ROLES)),
  /** The highest role in sessions started from a template, when that is higher. */
  templateRole: schema.optional(schema.oneOf(ROLES)),
  /** Sign-in that authorizes the request; signing out revokes it. */
  login: schema.optional(schema.text(64, /^[A-Za-z0-9_-]+$/)),
  /** Grant that authorizes the request. */
  grant: schema.optional(schema.text(128, /^[A-Za-z0-9._-]+$/)),
  /** When a connection opened by this request must re-authenticate. */
  reauthorizeMs: schema.optional(schema.integer(0, Number.MAX_SAFE_INTEGER)),
  /** Whether it may start any command and set any environment. */
  exec: schema.bool,
  /** The request may start its own command without `exec`, because control built it from a template. */
  starts: schema.optional(schema.bool),
  /** Environment of the started process; overrides all other sources. */
  env: schema.optional(
    schema.dictionary(MAX_ENV_ENTRIES, /^[A-Za-z_][A-Za-z0-9_]{0,63}$/, schema.text(MAX_ENV_CHARS)),
  ),
  /** A coding agent whose own interface the started session runs in place of its command, with the arguments of that. */
  agentTui: schema.optional(agentTuiSchema),
  /** Id for the session that this request starts. */
  session: schema.optional(schema.text(128)),
  /** Session name to report to the client; opaque to the sandbox. */
  sessionName: schema.optional(schema.text(2048, /^[\x21-\x7e]+$/)),
  requestId: schema.text(64, /^[A-Za-z0-9_-]+$/),
  issuedMs: schema.integer(0, Number.MAX_SAFE_INTEGER),
  expiresMs: schema.integer(0, Number.MAX_SAFE_INTEGER),
})

/** One request of control to a sandbox, signed for that request alone. */
export type InternalClaims = schema.Decoded<typeof claimsSchema>

/** The actual request that carries a token. */
export interface RequestFacts {
  readonly method: string
  readonly path: string
  readonly sandbox: string
  readonly nowMs: number
}

/** The path in a token: unchanged, or `#` and its hash. Request paths never contain `#`. */
async function claimPath(path: string): Promise<string> {
  if (path.length <= MAX_PLAIN_PATH_CHARS) return path
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(path))
  return `/#${toBase64Url(new Uint8Array(hash))}`
}

/** Signs claims with control's private key. */
export async function signInternalToken(key: CryptoKey, claims: InternalClaims): Promise<string> {
  const claimed: InternalClaims = { ...claims, path: await claimPath(claims.path) }
  const body = `${KIND}.${toBase64Url(new TextEncoder().encode(JSON.stringify(claimed)))}`
  const signature = await crypto.subtle.sign('Ed25519', key, new TextEncoder().encode(body))
  return `${body}.${toBase64Url(new Uint8Array(signature))}`
}

function refused(why: string): SandwireError {
  return new SandwireError('unauthorized', `Cannot authenticate: ${why}`)
}

function decodeClaims(text: string): InternalClaims | undefined {
  const bytes = fromBase64Url(text)
  if (bytes === undefined) return undefined
  try {
    return claimsSchema.decode(
      JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes)),
    )
  } catch {
    // Signed, but not JSON.
    return undefined
  }
}

function mismatch(claims: InternalClaims, facts: RequestFacts): string | undefined {
  const { issuedMs, expiresMs } = claims
  if (expiresMs <= issuedMs || expiresMs - issuedMs > MAX_TOKEN_LIFE_MS) return 'the token lives too long'
  if (facts.nowMs > expiresMs + CLOCK_SKEW_MS) return 'the token has expired'
  if (facts.nowMs < issuedMs - CLOCK_SKEW_MS) return 'the token is from the future'
  if (claims.sandbox !== facts.sandbox || !isSandboxId(claims.sandbox))
    return 'the token is for another sandbox'
  if (claims.method !== facts.method || claims.path !== facts.path) return 'the token is for another request'
  return undefined
}

/** The claims of a token that control signed for exactly this request; throws `unauthorized` otherwise. */
export async function verifyInternalToken(
  key: CryptoKey,
  token: string,
  facts: RequestFacts,
): Promise<InternalClaims> {
  if (token.length > MAX_TOKEN_CHARS) throw refused('the token is too long')
  const [kind, body, signature, ...rest] = token.split('.')
  if (kind !== KIND || body === undefined || signature === undefined || rest.length > 0)
    throw refused('the token is not one of this version')
  const bytes = fromBase64Url(signature)
  const signed = new TextEncoder().encode(`${kind}.${body}`)
  if (bytes === undefined || !(await crypto.subtle.verify('Ed25519', key, bytes, signed)))
    throw refused('the token is not accepted')
  const claims = decodeClaims(body)
  if (claims === undefined) throw refused('the token says what this version does not know')
  const why = mismatch(claims, { ...facts, path: await claimPath(facts.path) })
  if (why !== undefined) throw refused(why)
  return claims
}

/** Imports a public key: 32 raw bytes in base64url. */
export async function importPublicKey(text: string): Promise<CryptoKey> {
  const bytes = fromBase64Url(text)
  if (bytes?.length !== 32) throw new SandwireError('bad_request', 'Cannot use the public key: not 32 bytes')
  return crypto.subtle.importKey('raw', bytes, 'Ed25519', true, ['verify'])
}

/** Exports a public key as `importPublicKey` reads it. */
export async function exportPublicKey(key: CryptoKey): Promise<string> {
  const raw = await crypto.subtle.exportKey('raw', key)
  // The declared return type differs between platforms.
  if (!(raw instanceof ArrayBuffer)) throw new SandwireError('internal', 'Cannot write the public key')
  return toBase64Url(new Uint8Array(raw))
}
