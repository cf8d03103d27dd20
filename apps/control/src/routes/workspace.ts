import type { RouteConfig } from '@hono/zod-openapi'
import { SandwireError } from '@sandwire/protocol'
import type { Context } from 'hono'
import type { CommandPolicy } from '../commands/command-policy.ts'
import { LOCAL_ACCOUNT } from '../auth/local-identity.ts'
import { contentLength, requestHeaders, contentType } from '../workspace-proxy/headers.ts'
import { splitQuery } from '../workspace-proxy/query.ts'
import type { ProxyRoute } from '../workspace-proxy/route.ts'
import { nameOfRoute, PROXY_ROUTES } from '../workspace-proxy/routes.ts'
import { badBody, bodyTooLarge, findDuplicateKey, readRequestBody } from '../http/request-body.ts'
import { COMMON_HEADERS } from '../http/respond.ts'
import type { WorkspaceBudget } from '../http/rate-limits.ts'
import { readObjectError } from '../outcome.ts'
import { CALL_HEADER, type SandboxCall } from '../sandbox/call.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { parseSandboxRef, type SandboxRef } from '../sandbox/sandbox-id.ts'
import { FINAL_BODY_HEADER } from '../workspace-proxy/proxy.ts'
import { WORKSPACE_URL, type WorkspaceCall } from '../workspace-proxy/call.ts'
import { type App, type AppEnv, callOf } from './context.ts'
import { endpoint, type GuardOf } from './endpoint.ts'
import { describeRoute } from './workspace-openapi.ts'

export interface WorkspaceRouteDependencies {
  readonly lookup: SandboxLookup
  /** Name of the sandbox of a request that names none. */
  readonly defaultName: string
  /** The only sandbox is a folder of this machine, or the operator's sprite. */
  readonly hasOneSandbox: boolean
  readonly budget: WorkspaceBudget
  readonly commands: CommandPolicy
  readonly nowMs: () => number
}

/** A body to forward: the client's stream, or a validated text. */
interface Body {
  readonly content: ReadableStream | string | null
  /** Undefined if unknown. */
  readonly length?: number | undefined
  readonly headers: Readonly<Record<string, string>>
}

const JSON_TYPE = 'application/json'

/** Reads JSON without duplicate keys. For compat routes, sandboxd reports malformed JSON in their format. */
async function readJson(request: Request, { body: { maxBytes }, api }: ProxyRoute): Promise<string> {
  const text = new TextDecoder().decode(await readRequestBody(request.body, maxBytes))
  try {
    JSON.parse(text)
  } catch {
    if (api === 'compat') return text
    throw badBody('not JSON')
  }
  if (findDuplicateKey(text) !== undefined) throw badBody('a key is given twice')
  return text
}

/** Reads the body of a route. A body whose declared length is too large is refused before it is read. */
async function readBody(request: Request, route: ProxyRoute): Promise<Body> {
  const { kind, maxBytes } = route.body
  const { headers } = request
  const length = contentLength(headers)
  const isEmpty = request.body === null || length === 0
  if (kind === 'nothing') {
    if (!isEmpty) throw badBody('this route takes none')
    return { content: null, headers: {} }
  }
  if (length !== undefined && !(length <= maxBytes)) throw bodyTooLarge(maxBytes)
  if (headers.has('content-encoding')) throw badBody('content-encoding is not supported')
  // A missing body is an empty file.
  if (kind === 'bytes')
    return { content: request.body ?? '', headers: {}, length: request.body === null ? 0 : length }
  if (contentType(headers) !== JSON_TYPE) throw badBody(`content-type is not ${JSON_TYPE}`)
  const json = { 'content-type': JSON_TYPE }
  if (kind === 'content') return { content: request.body ?? '', headers: json, length }
  const text = await readJson(request, route)
  return { content: text, headers: json, length: new TextEncoder().encode(text).length }
}

/** Headers for sandboxd; throws `bad_request` for a malformed one. */
function readHeaders(headers: Headers): Readonly<Record<string, string>> {
  const picked = requestHeaders(headers)
  if (typeof picked.malformed === 'string')
    throw new SandwireError('bad_request', `Cannot use the header "${picked.malformed}": malformed`)
  return picked
}

const UPLOAD_ID = /^[0-9a-f]{32}$/

function readId({ path }: ProxyRoute, id: string | undefined): { readonly id?: string } {
  if (!path.includes(':id')) return {}
  if (id === undefined || !UPLOAD_ID.test(id))
    throw new SandwireError('bad_request', 'Cannot use "id": expected 32 hex digits')
  return { id }
}

/**
 * The requested sandbox. A server's only sandbox is created by its owner's first request; no other sandbox is created by a
 * request for its files.
 */
async function findOrCreate(
  call: SandboxCall,
  ref: SandboxRef,
  { lookup, defaultName, hasOneSandbox }: WorkspaceRouteDependencies,
): Promise<string> {
  try {
    return await lookup.resolve(call.identity, ref)
  } catch (error) {
    const isMissing = error instanceof SandwireError && error.code === 'sandbox_not_found'
    const isDefault = ref.by === 'name' && ref.name === defaultName
    const isOwner = call.identity === LOCAL_ACCOUNT && call.scopes.includes('admin')
    if (!(isMissing && hasOneSandbox && isDefault && isOwner)) throw error
    return (await lookup.create(call, defaultName, lookup.defaultSettings, true)).id
  }
}

/** Forwards a request to the sandbox's object. */
async function forward(
  context: Context<AppEnv>,
  route: ProxyRoute,
  deps: WorkspaceRouteDependencies,
): Promise<Response> {
  const { lookup, defaultName, budget, commands, nowMs } = deps
  const request = context.req.raw
  const { sandbox, rest } = splitQuery(route, new URL(request.url).search)
  const call = callOf(context)
  if (route.runsCommands) commands.checkFree(call, undefined)
  const forwarded = readHeaders(request.headers)
  const upload = readId(route, context.req.param('id'))
  const ref = parseSandboxRef(context.req.param('sandbox') ?? sandbox ?? defaultName)
  budget.take(call.identity, route.cost, nowMs())
  const id = await findOrCreate(call, ref, deps)
  const body = await readBody(request, route)
  const isHead = request.method === 'HEAD' && route.hasHead
  const workspaceCall: WorkspaceCall = {
    ...call,
    ...upload,
    route: nameOfRoute(route),
    isHead,
    query: rest,
    mayStart: deps.hasOneSandbox && route.api === 'compat' && call.scopes.includes('exec'),
    headers: {
      ...forwarded,
      ...body.headers,
    },
    ...(body.length === undefined ? {} : { length: body.length }),
  }
  const response = await lookup.sandbox(id).fetch(WORKSPACE_URL, {
    method: isHead ? 'HEAD' : route.method,
    headers: { [CALL_HEADER]: JSON.stringify(workspaceCall) },
    ...(body.content === null ? {} : { body: body.content }),
  })
  return toResponse(response, route, request.method === 'HEAD')
}

/** Converts the object's response for the client. */
async function toResponse(response: Response, route: ProxyRoute, isHead: boolean): Promise<Response> {
  const { status, headers, body } = response
  const isWhole = headers.get(FINAL_BODY_HEADER) === '1'
  if (status >= 400 && !isWhole) throw await readObjectError(response)
  const responseHeaders = new Headers(headers)
  responseHeaders.delete(FINAL_BODY_HEADER)
  for (const [name, value] of Object.entries(COMMON_HEADERS)) responseHeaders.set(name, value)
  if (route.response.isDownload && !isWhole) responseHeaders.set('content-disposition', 'attachment')
  // The router would drop the body of a response to HEAD and leave the sandbox sending it.
  if (isHead) await body?.cancel()
  return new Response(isHead ? null : body, { status, headers: responseHeaders })
}

/** The workspace routes, by the table of proxied routes. */
export function addWorkspaceRoutes(app: App, guardOf: GuardOf, deps: WorkspaceRouteDependencies): void {
  for (const route of PROXY_ROUTES) {
    const described: RouteConfig = describeRoute(route)
    app.openapi(endpoint(guardOf, described), (context) => forward(context, route, deps))
  }
}
