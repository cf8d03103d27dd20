import { concatBytes } from '@sandwire/bytes'
import type { CredentialSettings } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import type { GatewayGrant } from './grant.ts'
import { isAgentBranch, readPushCommands } from './pkt-line.ts'
import { refuseText } from './refusal.ts'
import type { TokenSource } from './token-source.ts'

/** Public git servers that need no settings. */
const PUBLIC_GIT_HOSTS: readonly string[] = ['github.com', 'gitlab.com', 'bitbucket.org', 'codeberg.org']

/** Enough for a large clone on a slow network. */
const TRANSFER_MS = 30 * 60_000
const REQUEST_HEADERS = ['accept', 'content-encoding', 'content-type', 'git-protocol', 'user-agent']
const RESPONSE_HEADERS = ['cache-control', 'content-type', 'expires', 'pragma']
const SERVICES = ['git-upload-pack', 'git-receive-pack'] as const
type Service = (typeof SERVICES)[number]

export interface GitDependencies {
  readonly settings: CredentialSettings
  readonly tokens: TokenSource
  readonly fetchUpstream: (url: string, init: RequestInit) => Promise<Response>
  readonly count: (outcome: 'ok' | 'refused' | 'upstream_error') => void
}

/** A request for a repository: `path` is the path at the host. */
export interface GitRoute {
  readonly host: string
  readonly path: string
  readonly query: URLSearchParams
}

/** Where a git server is; undefined: it is not configured. */
export function gitUrlOf(host: string, { git }: CredentialSettings): string | undefined {
  const configured = git.find((each) => each.host === host)
  if (configured !== undefined) return configured.url ?? `https://${host}`
  return PUBLIC_GIT_HOSTS.includes(host) ? `https://${host}` : undefined
}

/** `OWNER/NAME` of a repository's path. */
export function repositoryPath(path: string): string {
  return path.replace(/^\/+|\/+$/g, '').replace(/\.git$/, '')
}

interface GitRequest {
  readonly service: Service
  readonly isAdvertisement: boolean
  readonly path: string
}

/** The three requests of git over smart HTTP; undefined for all others. */
function parseGitRequest(method: string, { path, query }: GitRoute): GitRequest | undefined {
  const advertisement = /^(\/.+)\/info\/refs$/.exec(path)
  if (advertisement !== null && method === 'GET') {
    const service = SERVICES.find((each) => each === query.get('service'))
    if (service === undefined || [...query.keys()].length !== 1) return undefined
    return { service, isAdvertisement: true, path: repositoryPath(advertisement[1] ?? '') }
  }
  const [, repository, name] = /^(\/.+)\/(git-upload-pack|git-receive-pack)$/.exec(path) ?? []
  const service = SERVICES.find((each) => each === name)
  if (repository === undefined || service === undefined || method !== 'POST') return undefined
  return [...query.keys()].length > 0
    ? undefined
    : { service, isAdvertisement: false, path: repositoryPath(repository) }
}

/** True when the request is for the one repository of the grant. Names at these hosts ignore case. */
function isGranted({ repository }: NonNullable<GatewayGrant['git']>, host: string, path: string): boolean {
  const granted = new URL(repository)
  return granted.host === host && repositoryPath(granted.pathname).toLowerCase() === path.toLowerCase()
}

/** The body of a push whose commands were checked; otherwise the refusal. Only the commands are held. */
async function checkPush(request: Request): Promise<ReadableStream<Uint8Array> | Response> {
  // Git does not compress pushes.
  if (request.headers.has('content-encoding') || request.body === null)
    return refuseText(400, 'the push cannot be read')
  const reader = (request.body as ReadableStream<Uint8Array>).getReader()
  let start = new Uint8Array()
  for (;;) {
    const commands = readPushCommands(start)
    if (commands.kind === 'refused') return refuseText(403, 'the push cannot be read')
    if (commands.kind === 'whole') {
      const refused = commands.updates.find(({ ref }) => !isAgentBranch(ref))
      if (refused !== undefined)
        return refuseText(403, 'the run may push to branches whose name begins with agent/ only')
      break
    }
    const { done, value } = await reader.read()
    if (done) return refuseText(400, 'the push was not received whole')
    start = concatBytes([start, value])
  }
  return new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(start),
    async pull(controller) {
      const { done, value } = await reader.read()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

function pick(given: Headers, names: readonly string[]): Headers {
  const headers = new Headers()
  for (const name of names) {
    const value = given.get(name)
    if (value !== null) headers.set(name, value)
  }
  return headers
}

async function send(
  request: Request,
  url: string,
  body: ReadableStream<Uint8Array> | null,
  token: { readonly username: string; readonly token: string } | undefined,
  { fetchUpstream, count }: GitDependencies,
): Promise<Response> {
  const headers = pick(request.headers, REQUEST_HEADERS)
  if (token !== undefined) headers.set('authorization', `Basic ${btoa(`${token.username}:${token.token}`)}`)
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(TRANSFER_MS)])
  let response: Response
  try {
    response = await fetchUpstream(url, { method: request.method, headers, body, redirect: 'manual', signal })
  } catch {
    count('upstream_error')
    return refuseText(502, 'the git server does not respond')
  }
  if (response.status !== 200) {
    count('upstream_error')
    await response.body?.cancel()
    if (response.status >= 300 && response.status < 400)
      return refuseText(404, 'the repository has moved; use its current URL')
    // Git would ask for a password at 401.
    const status = response.status === 401 ? 403 : response.status
    return refuseText(status, `the git server refuses the request (${response.status})`)
  }
  count('ok')
  return new Response(response.body, { headers: pick(response.headers, RESPONSE_HEADERS) })
}

/** Handles a request of git for the repository of a run. The token is added here, and the sandbox never has it. */
export async function handleGit(
  request: Request,
  route: GitRoute,
  { git: grant }: GatewayGrant,
  deps: GitDependencies,
): Promise<Response> {
  const refuse = (status: number, message: string): Response => {
    deps.count('refused')
    return refuseText(status, message)
  }
  const parsed = parseGitRequest(request.method, route)
  if (parsed === undefined) return refuse(404, 'not a request of git over smart HTTP')
  if (grant === undefined || !isGranted(grant, route.host, parsed.path))
    return refuse(403, 'the run may not use this repository')
  const isPush = parsed.service === 'git-receive-pack'
  if (isPush && grant.push === 'none') return refuse(403, 'the run may not push')
  const base = gitUrlOf(route.host, deps.settings)
  if (base === undefined)
    return refuse(403, `git server "${route.host}" is not configured; add it to "credentials.git"`)
  let body = request.body as ReadableStream<Uint8Array> | null
  if (isPush && !parsed.isAdvertisement) {
    const checked = await checkPush(request)
    if (checked instanceof Response) {
      deps.count('refused')
      return checked
    }
    body = checked
  }
  try {
    const token = await deps.tokens.tokenFor({
      host: route.host,
      path: parsed.path,
      access: isPush ? 'push' : 'read',
      installationId: grant.installationId,
    })
    const query = parsed.isAdvertisement ? `/info/refs?service=${parsed.service}` : `/${parsed.service}`
    // The granted URL, so that nothing else of the request's path is used.
    const path = repositoryPath(new URL(grant.repository).pathname)
    return await send(request, `${base}/${path}.git${query}`, body, token, deps)
  } catch (error) {
    if (error instanceof SandwireError && error.code === 'agent_not_configured')
      return refuse(403, error.message)
    throw error
  }
}
