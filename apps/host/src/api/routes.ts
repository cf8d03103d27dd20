import { type HostHealth, isSandboxId, type SandboxStatus, startSpecSchema } from '@sandwire/internal-api'
import { parseStopReason, SandwireError, schema, SOFTWARE_VERSION } from '@sandwire/protocol'
import type { AgentInstaller } from '../agents/agent-installer.ts'
import type { DiskGuard } from '../disk/disk-guard.ts'
import type { SandboxManager } from '../sandboxes/sandbox-manager.ts'
import { readJson, refuse } from './respond.ts'
import type { SignInCodes } from './sign-in-codes.ts'

/** Most bytes of a log in one response. */
const MAX_LOG_BYTES = 1024 * 1024
const DEFAULT_LOG_BYTES = 64 * 1024

const codeSchema = schema.record({ code: schema.text(128) })

/** The part of a container engine that health checks use. */
export interface ContainerEngine {
  isAnswering(): Promise<boolean>
}

export interface ApiDependencies {
  /** Absent when control creates sandboxes itself, as containers of `engine`. */
  readonly manager?: SandboxManager
  readonly engine?: ContainerEngine
  readonly disk?: Pick<DiskGuard, 'health'>
  /** Installs programs of agents; absent with containers, whose image has them. */
  readonly agents?: Pick<AgentInstaller, 'ensure'>
  /** Absent when the local user cannot sign in by link. */
  readonly codes?: SignInCodes
  /** Origin of sign-in links. */
  readonly publicUrl: string
}

/** A matched route: its name for the log, and its handler. */
export interface Answer {
  readonly route: string
  readonly sandbox?: string
  readonly respond: () => Promise<Response>
}

type Handler = (request: Request, id: string, manager: SandboxManager) => Promise<Response>

const empty = (): Response => new Response(null, { status: 204 })

async function health(manager: SandboxManager, { disk }: ApiDependencies): Promise<HostHealth> {
  const all = await manager.list()
  return {
    status: 'ok',
    version: SOFTWARE_VERSION,
    isolation: manager.isolation,
    sandboxes: all.filter(({ state }) => state === 'running').length,
    ...(disk !== undefined && { disk: disk.health }),
  }
}

/** Health of a host whose sandboxes are containers. Control counts them itself. */
async function engineHealth(engine: ContainerEngine, { disk }: ApiDependencies): Promise<HostHealth> {
  if (!(await engine.isAnswering()))
    throw new SandwireError('provider_unavailable', 'The Docker engine does not answer')
  return {
    status: 'ok',
    version: SOFTWARE_VERSION,
    isolation: 'container',
    sandboxes: 0,
    ...(disk !== undefined && { disk: disk.health }),
  }
}

async function start(request: Request, id: string, manager: SandboxManager): Promise<SandboxStatus> {
  const spec = startSpecSchema.decode(await readJson(request))
  if (spec === undefined) return refuse('bad_request', 'Cannot start the sandbox: the request is malformed')
  if (spec.id !== id)
    return refuse('bad_request', 'Cannot start the sandbox: the ids in path and body differ')
  return manager.start(spec)
}

async function stop(request: Request, id: string, manager: SandboxManager): Promise<SandboxStatus> {
  const reason = parseStopReason(new URL(request.url).searchParams.get('reason'))
  return manager.stop(id, reason ?? 'requested')
}

async function readLog(request: Request, id: string, manager: SandboxManager): Promise<Response> {
  const text = new URL(request.url).searchParams.get('bytes') ?? String(DEFAULT_LOG_BYTES)
  if (!/^[0-9]{1,9}$/.test(text)) return refuse('bad_request', 'Cannot read the log: bytes is not a number')
  const log = await manager.readLog(id, Math.min(Number(text), MAX_LOG_BYTES))
  return new Response(log, { headers: { 'content-type': 'application/x-ndjson' } })
}

/** Routes of one sandbox: method, and the path after its id. */
const SANDBOX_ROUTES: Readonly<Record<string, Handler>> = {
  'GET ': async (_request, id, manager) => Response.json(await manager.status(id)),
  'PUT ': async (request, id, manager) => Response.json(await start(request, id, manager)),
  'DELETE ': async (_request, id, manager) => manager.destroy(id).then(empty),
  'POST /stop': async (request, id, manager) => Response.json(await stop(request, id, manager)),
  'POST /disconnect': async (_request, id, manager) => manager.disconnect(id).then(empty),
  'GET /logs': readLog,
}

/** The sign-in link; with a code it signs in the local user. */
export function signInLink(publicUrl: string, codes: SignInCodes | undefined): string {
  return codes === undefined ? `${publicUrl}/signin` : `${publicUrl}/signin#${codes.mint()}`
}

async function redeem(request: Request, { codes }: ApiDependencies): Promise<Response> {
  const body = codeSchema.decode(await readJson(request))
  if (body === undefined) return refuse('bad_request', 'Cannot sign in: the request is malformed')
  if (codes?.redeem(body.code) !== true)
    return refuse(
      'unauthorized',
      'Cannot sign in: the link was used or has expired; run npx sandwire signin for a new one',
    )
  return empty()
}

/** Routes about all sandboxes. */
const MANAGER_ROUTES: Readonly<
  Record<string, (manager: SandboxManager, deps: ApiDependencies) => Promise<Response>>
> = {
  'GET /health': async (manager, deps) => Response.json(await health(manager, deps)),
  'GET /running': async (manager) => Response.json({ ids: manager.runningIds() }),
  'GET /sandboxes': async (manager) => Response.json({ sandboxes: await manager.list() }),
}

/** Routes without a sandbox. */
const PLAIN_ROUTES: Readonly<Record<string, (request: Request, deps: ApiDependencies) => Promise<Response>>> =
  {
    'POST /signin/redeem': redeem,
    'POST /signin': async (_request, { codes, publicUrl }) =>
      Response.json({ link: signInLink(publicUrl, codes) }),
  }

/** `PUT /agents/NAME` installs the program of an agent, and answers how far that is. */
function routeToAgents(request: Request, pathname: string, { agents }: ApiDependencies): Answer | undefined {
  const [, name] = /^\/agents\/([a-z0-9-]{1,32})$/.exec(pathname) ?? []
  if (agents === undefined || name === undefined || request.method !== 'PUT') return undefined
  return { route: 'PUT /agents/:name', respond: async () => Response.json(agents.ensure(name)) }
}

function routeToManager(
  request: Request,
  pathname: string,
  manager: SandboxManager,
  deps: ApiDependencies,
): Answer | undefined {
  const ofAll = `${request.method} ${pathname}`
  const answerAll = Object.hasOwn(MANAGER_ROUTES, ofAll) ? MANAGER_ROUTES[ofAll] : undefined
  if (answerAll !== undefined) return { route: ofAll, respond: () => answerAll(manager, deps) }
  const match = /^\/sandboxes\/([^/]+)((?:\/[a-z]+)?)$/.exec(pathname)
  if (match === null) return undefined
  const [, id = '', rest = ''] = match
  const key = `${request.method} ${rest}`
  const ofSandbox = Object.hasOwn(SANDBOX_ROUTES, key) ? SANDBOX_ROUTES[key] : undefined
  if (ofSandbox === undefined) return undefined
  if (!isSandboxId(id)) throw new SandwireError('bad_request', 'Cannot find the sandbox: not a sandbox id')
  return {
    route: `${request.method} /sandboxes/:id${rest}`,
    sandbox: id,
    respond: () => ofSandbox(request, id, manager),
  }
}

/** Matches a request to a route; undefined when there is none. */
export function route(request: Request, deps: ApiDependencies): Answer | undefined {
  const { pathname } = new URL(request.url)
  const plain = `${request.method} ${pathname}`
  const handler = Object.hasOwn(PLAIN_ROUTES, plain) ? PLAIN_ROUTES[plain] : undefined
  if (handler !== undefined) return { route: plain, respond: () => handler(request, deps) }
  const toAgents = routeToAgents(request, pathname, deps)
  if (toAgents !== undefined) return toAgents
  const { manager, engine } = deps
  if (manager !== undefined) return routeToManager(request, pathname, manager, deps)
  if (engine === undefined || plain !== 'GET /health') return undefined
  return { route: plain, respond: async () => Response.json(await engineHealth(engine, deps)) }
}
