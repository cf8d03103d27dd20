import type { CredentialSettings } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import { importPKCS8, SignJWT } from 'jose'
import { readBoundedJson } from '../http/read-bounded.ts'
import type { ReadSecret } from './providers.ts'

/** `read`: clone and fetch. `push`: push branches. `publish`: also open pull requests; never for an agent. */
export type GitAccess = 'read' | 'push' | 'publish'

export interface TokenRequest {
  /** Host of the repository, as in its URL. */
  readonly host: string
  /** Path of the repository, without `.git`: `OWNER/NAME`. */
  readonly path: string
  readonly access: GitAccess
  /** GitHub App installation; absent: the token that is configured for the host. */
  readonly installationId?: number | undefined
}

/** A credential for a git server, sent as basic authentication. */
export interface GitToken {
  readonly username: string
  readonly token: string
}

/** Issues tokens for git servers. A vault could be another implementation. */
export interface TokenSource {
  /** Undefined: no credential is needed or configured. Throws `agent_not_configured` when a requested one cannot be issued. */
  tokenFor(request: TokenRequest): Promise<GitToken | undefined>
}

export interface TokenSourceDependencies {
  readonly settings: CredentialSettings
  readonly readSecret: ReadSecret
  readonly fetchUpstream: (url: string, init: RequestInit) => Promise<Response>
  readonly nowMs: () => number
}

const USERNAME = 'x-access-token'
const MAX_RESPONSE_BYTES = 64 * 1024
const REQUEST_MS = 15_000
/** GitHub accepts at most ten minutes. */
const JWT_SECONDS = 540
/** Tokens live for an hour; a request may take a while after it got one. */
const RENEW_MS = 20 * 60_000
const MAX_CACHED = 1_000

const PERMISSIONS: Readonly<Record<GitAccess, Readonly<Record<string, string>>>> = {
  read: { contents: 'read' },
  push: { contents: 'write' },
  publish: { contents: 'write', pull_requests: 'write' },
}

interface CachedToken {
  readonly token: string
  readonly expiresMs: number
}

function cannot(problem: string, cause?: unknown): SandwireError {
  return new SandwireError('agent_not_configured', `Cannot use the repository: ${problem}`, { cause })
}

const NO_APP = 'no GitHub App is configured; set GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY'

/** Signs in as the GitHub App itself. */
async function signAppToken(readSecret: ReadSecret, nowMs: number): Promise<string> {
  const id = readSecret('GITHUB_APP_ID')
  const pem = readSecret('GITHUB_APP_PRIVATE_KEY')
  if (id === undefined || pem === undefined) throw cannot(NO_APP)
  const nowSeconds = Math.floor(nowMs / 1000)
  try {
    return await new SignJWT()
      .setProtectedHeader({ alg: 'RS256' })
      .setIssuer(id)
      // Clocks may differ.
      .setIssuedAt(nowSeconds - 60)
      .setExpirationTime(nowSeconds + JWT_SECONDS)
      .sign(await importPKCS8(pem, 'RS256'))
  } catch (cause) {
    throw cannot(
      'GITHUB_APP_PRIVATE_KEY is no PKCS #8 key; convert it with openssl pkcs8 -topk8 -nocrypt',
      cause,
    )
  }
}

/** What the operator must set before a token can be issued; undefined: nothing is known to be missing. */
export function findTokenProblem(
  { settings, readSecret }: Pick<TokenSourceDependencies, 'settings' | 'readSecret'>,
  { host, installationId }: Pick<TokenRequest, 'host' | 'installationId'>,
): string | undefined {
  if (installationId !== undefined) {
    const isSet = ['GITHUB_APP_ID', 'GITHUB_APP_PRIVATE_KEY'].every((name) => readSecret(name) !== undefined)
    return isSet ? undefined : NO_APP
  }
  const secret = settings.git.find((each) => each.host === host)?.secret
  if (secret === undefined)
    return `no token for "${host}" is configured; add it to "credentials.git", or start runs with an installationId`
  return readSecret(secret) === undefined ? `its token is missing; set ${secret}` : undefined
}

/** Tokens of the GitHub App's installations, limited to one repository, and tokens that the operator configured for hosts. */
export function openTokenSource(
  { settings, readSecret, fetchUpstream, nowMs }: TokenSourceDependencies,
  cache = new Map<string, CachedToken>(),
): TokenSource {
  const mint = async ({ path, access, installationId }: TokenRequest): Promise<string> => {
    const key = `${installationId} ${access} ${path}`
    const known = cache.get(key)
    if (known !== undefined && known.expiresMs - nowMs() > RENEW_MS) return known.token
    const app = await signAppToken(readSecret, nowMs())
    const url = `${settings.githubApiUrl}/app/installations/${installationId}/access_tokens`
    const response = await fetchUpstream(url, {
      method: 'POST',
      redirect: 'manual',
      signal: AbortSignal.timeout(REQUEST_MS),
      headers: {
        authorization: `Bearer ${app}`,
        accept: 'application/vnd.github+json',
        'content-type': 'application/json',
        'user-agent': 'sandwire',
      },
      body: JSON.stringify({ repositories: [path.split('/').at(-1)], permissions: PERMISSIONS[access] }),
    }).catch((cause: unknown) => {
      throw cannot('GitHub does not respond', cause)
    })
    const body = (await readBoundedJson(response, MAX_RESPONSE_BYTES)) as
      | { token?: unknown; expires_at?: unknown }
      | undefined
    if (response.status !== 201 || typeof body?.token !== 'string')
      throw cannot(
        `GitHub refuses a token of installation ${installationId} for it (${response.status}); install the App on the repository`,
      )
    const expiresMs = Date.parse(String(body.expires_at))
    if (cache.size >= MAX_CACHED) cache.clear()
    if (Number.isFinite(expiresMs)) cache.set(key, { token: body.token, expiresMs })
    return body.token
  }
  return {
    async tokenFor(request) {
      if (request.installationId !== undefined) {
        if (request.host !== 'github.com') throw cannot('an installation is of github.com only')
        return { username: USERNAME, token: await mint(request) }
      }
      const configured = settings.git.find(({ host }) => host === request.host)
      if (configured?.secret === undefined) return undefined
      const token = readSecret(configured.secret)
      if (token === undefined) throw cannot(`its token is missing; set ${configured.secret}`)
      return { username: configured.username, token }
    },
  }
}
