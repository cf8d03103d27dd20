import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportPublicKey, ID_ALPHABET, type InternalClaims, signInternalToken } from '@sandwire/internal-api'
import { type RunningSandboxd, type SandboxdOptions, startSandboxd } from './sandboxd.ts'
import { mintHex, WireClient } from './wire-client.ts'

/** A sandbox id in control's format. */
export const SANDBOX_ID = ID_ALPHABET

/** Lifetime of test tokens. */
const TOKEN_LIFE_MS = 30_000

/** Changes to the default claims. */
export type ClaimChanges = Partial<InternalClaims>

/** A sandboxd that accepts internal tokens, and the key that signs them. */
export interface SignedSandboxd extends AsyncDisposable {
  readonly sandboxd: RunningSandboxd
  /** Signs a token for one request; a driver's with exec by default. */
  readonly sign: (method: string, path: string, changes?: ClaimChanges) => Promise<string>
  /** Fetches a path with a new token. */
  readonly fetch: (path: string, init?: RequestInit, changes?: ClaimChanges) => Promise<Response>
  /** Connects to `/attach` with a new token. */
  readonly attach: (query: string, changes?: ClaimChanges) => Promise<WireClient>
}

/** Adds a session id of the test sandbox. */
export function mintSessionId(): string {
  const letters = [...crypto.getRandomValues(new Uint8Array(26))].map((byte) => ID_ALPHABET[byte % 32])
  return `${SANDBOX_ID}.${letters.join('')}`
}

export async function startSignedSandboxd(options: SandboxdOptions = {}): Promise<SignedSandboxd> {
  const keys = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
  const directory = await mkdtemp(join(tmpdir(), 'sandwire-key-'))
  const keyFile = join(directory, 'control.pub')
  await writeFile(keyFile, `${await exportPublicKey(keys.publicKey)}\n`)
  const credential = ['--public-key', keyFile, '--sandbox', SANDBOX_ID]
  const sandboxd = await startSandboxd({ ...options, credential })
  const sign: SignedSandboxd['sign'] = (method, path, changes) => {
    const issuedMs = Date.now()
    return signInternalToken(keys.privateKey, {
      method,
      path,
      sandbox: SANDBOX_ID,
      identity: 'local:1',
      authority: 'driver',
      exec: true,
      requestId: mintHex(),
      issuedMs,
      expiresMs: issuedMs + TOKEN_LIFE_MS,
      ...changes,
    } as InternalClaims)
  }
  return {
    sandboxd,
    sign,
    fetch: async (path, init = {}, changes = {}) => {
      const headers = new Headers(init.headers)
      headers.set('authorization', `Bearer ${await sign(init.method ?? 'GET', path, changes)}`)
      return sandboxd.fetch(path, { ...init, headers })
    },
    attach: async (query, changes = {}) => {
      const authorization = `Bearer ${await sign('GET', `/attach?${query}`, changes)}`
      return new WireClient({ ...sandboxd, headers: { authorization } }, query)
    },
    [Symbol.asyncDispose]: async () => {
      await sandboxd.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
