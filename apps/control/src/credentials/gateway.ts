import { WorkerEntrypoint } from 'cloudflare:workers'
import { GATEWAY_PATHS, MAX_SLOTS, SLOT_HEADER } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { Env } from '../env.ts'
import { unwrap } from '../outcome.ts'
import { type Runtime, runtimeOf } from '../runtime.ts'
import type { GatewaySource } from './grant.ts'
import type { GatewayGrantObject } from './grant-object.ts'
import type { ParsedToken } from './grant-token.ts'
import { handleGit } from './git.ts'
import { handleHeaderRule } from './header-rule.ts'
import { type GrantCalls, handleModel } from './model.ts'
import { refuseModel, refuseText } from './refusal.ts'
import { secretsOf } from './secrets.ts'
import { openTokenSource } from './token-source.ts'

const BEARER = /^Bearer +([^ ]+)$/i

/** Connects to configured upstreams, through the network service if the runtime has none of its own. */
export function upstreamOf(env: Env): (url: string, init: RequestInit) => Promise<Response> {
  return (url, init) => (env.UPSTREAMS === undefined ? fetch(url, init) : env.UPSTREAMS.fetch(url, init))
}

/** The token, as the clients of model APIs and git send it. */
function tokenOf(headers: Headers): string {
  return BEARER.exec(headers.get('authorization') ?? '')?.[1] ?? headers.get('x-api-key') ?? ''
}

function keyOf(source: GatewaySource): string {
  return 'slot' in source ? `slot:${source.slot}` : source.sandbox
}

/** The grant object of a token, with every call checked for token and source. */
function callsOf(env: Env, { run, hash }: ParsedToken, source: GatewaySource): GrantCalls {
  const presented = { tokenHash: hash, source }
  const object: DurableObjectStub<GatewayGrantObject> = env.GATEWAY_GRANT.get(
    env.GATEWAY_GRANT.idFromName(run),
  )
  return {
    authorize: async () => unwrap(await object.authorize(presented)),
    reserve: async (bound) => unwrap(await object.reserve(presented, bound)),
    settle: async (reservation, model, usage) => unwrap(await object.settle(reservation, model, usage)),
  }
}

interface GatewayRequest {
  readonly request: Request
  readonly source: GatewaySource
  readonly hold: (work: Promise<unknown>) => void
}

/** The first segment after a prefix, and the rest of the path with its slash. */
function splitPath(path: string, prefix: string): { readonly first: string; readonly rest: string } {
  const below = path.slice(prefix.length)
  const end = below.indexOf('/')
  return end < 0 ? { first: below, rest: '' } : { first: below.slice(0, end), rest: below.slice(end) }
}

async function dispatch(
  { request, source, hold }: GatewayRequest,
  env: Env,
  runtime: Runtime,
): Promise<Response> {
  const { config, nowMs, sleep, metrics, gatewayLimit } = runtime
  const url = new URL(request.url)
  if (!gatewayLimit.take(keyOf(source), nowMs()))
    return refuseModel(429, 'too many requests', { retryAfterSeconds: 1 })
  const { gatewayTokens } = await runtime.keys()
  const token = await gatewayTokens.parse(tokenOf(request.headers))
  if (token === undefined) throw new SandwireError('unauthorized', 'The gateway token is not valid')
  const grant = callsOf(env, token, source)
  const common = {
    settings: config.credentials,
    readSecret: secretsOf(env),
    fetchUpstream: upstreamOf(env),
    grant,
    hold,
    sleep,
    nowMs,
  }
  if (url.pathname.startsWith(GATEWAY_PATHS.models)) {
    const { first, rest } = splitPath(url.pathname, GATEWAY_PATHS.models)
    const count = (outcome: string): void =>
      metrics.count('sandwire_gateway_requests_total', { kind: 'model', outcome })
    return handleModel(
      request,
      { provider: first, path: rest, query: url.searchParams },
      { ...common, count },
    )
  }
  const granted = await grant.authorize()
  const countAs =
    (kind: string) =>
    (outcome: string): void =>
      metrics.count('sandwire_gateway_requests_total', { kind, outcome })
  if (url.pathname.startsWith(GATEWAY_PATHS.git)) {
    const { first, rest } = splitPath(url.pathname, GATEWAY_PATHS.git)
    const tokens = openTokenSource(common, runtime.gitTokens)
    const route = { host: first, path: rest, query: url.searchParams }
    return handleGit(request, route, granted, { ...common, tokens, count: countAs('git') })
  }
  if (url.pathname.startsWith(GATEWAY_PATHS.hosts)) {
    const { first, rest } = splitPath(url.pathname, GATEWAY_PATHS.hosts)
    const response = await handleHeaderRule(
      request,
      { host: first, path: rest, search: url.search },
      granted,
      common,
    )
    countAs('host')(response.ok ? 'ok' : 'refused')
    return response
  }
  // Only makes control check the run sooner, so a forged one does no harm.
  if (url.pathname === GATEWAY_PATHS.wake && request.method === 'POST') {
    await env.CLAUDE_SANDBOX.get(env.CLAUDE_SANDBOX.idFromName(token.run)).wake()
    countAs('wake')('ok')
    return new Response(null, { status: 204 })
  }
  return refuseText(404, 'no such path at the gateway')
}

/** Statuses of refusals that a program in a sandbox can cause at will. */
const REFUSALS = new Set([401, 403, 404, 429])
/** Delayed for a sandbox that causes many, because requests to the gateway are not queued as those of accounts are. */
const REFUSAL_DELAY_MS = 5_000

/** Answers a request from inside a sandbox. Errors never carry causes or stacks. */
export async function handleGateway(gatewayRequest: GatewayRequest, env: Env): Promise<Response> {
  const runtime = runtimeOf(env)
  const response = await answer(gatewayRequest, env, runtime)
  const { gatewayRefusalLimit, nowMs, sleep } = runtime
  if (REFUSALS.has(response.status) && !gatewayRefusalLimit.take(keyOf(gatewayRequest.source), nowMs()))
    await sleep(REFUSAL_DELAY_MS)
  return response
}

async function answer(gatewayRequest: GatewayRequest, env: Env, runtime: Runtime): Promise<Response> {
  try {
    return await dispatch(gatewayRequest, env, runtime)
  } catch (caught) {
    const error = SandwireError.from(caught)
    if (error.code === 'unauthorized') return refuseModel(401, 'the gateway token is not valid here')
    runtime.log.error('gateway_error', { code: error.code, cause: String(caught) })
    return refuseModel(503, 'the gateway failed; try again')
  }
}

/** Requests of sandboxes on this machine. workerd sets the header of the slot; on Cloudflare no request arrives here. */
export class Gateway extends WorkerEntrypoint<Env> {
  override fetch(request: Request): Promise<Response> {
    const text = request.headers.get(SLOT_HEADER) ?? ''
    const slot = /^\d{1,5}$/.test(text) ? Number(text) : MAX_SLOTS
    if (slot >= MAX_SLOTS) return Promise.resolve(refuseText(403, 'no slot'))
    return handleGateway({ request, source: { slot }, hold: (work) => this.ctx.waitUntil(work) }, this.env)
  }
}
