import { limits, parseCreateBody, SandwireError, schema, signalNumber } from '@sandwire/protocol'
import type { AttachmentFilter, SessionRegistry } from '../sessions/session-registry.ts'
import { checkSessionId } from './attach-parameters.ts'
import type { Caller } from '../caller.ts'
import { readJson } from './request-body.ts'
import { refuse, respondJson } from './respond.ts'
import { checkStart } from './authorization.ts'
import { viewSession } from './session-view.ts'

/** Output returned by one request; headers say where the next one continues. */
const MAX_OUTPUT_BYTES = 1024 * 1024

export interface SessionRouteDependencies {
  readonly registry: SessionRegistry
  readonly epochMs: number
  /** Closes the connections of viewers of runs; returns their number. */
  readonly revokeViewers: (filter: AttachmentFilter) => number
}

interface CreateCall {
  readonly request: Request
  readonly caller: Caller
  readonly requestId: string
}

/** `GET /sessions` */
export function listSessions({ registry, epochMs }: SessionRouteDependencies): Response {
  return respondJson({ sessions: [...registry.all()].map((runner) => viewSession(runner, epochMs)) })
}

/** `POST /sessions`: starts a process without attaching to it. */
export async function createSession(
  { request, caller, requestId }: CreateCall,
  deps: SessionRouteDependencies,
): Promise<Response> {
  checkStart(caller)
  const body = parseCreateBody(await readJson(request))
  if (!caller.exec && Object.keys(body.env).length > 0)
    throw new SandwireError('forbidden', 'Cannot set the environment: this caller may not choose it')
  if (body.create.pane !== undefined) await deps.registry.findPanes()
  const { runner, isNew } = deps.registry.create({ caller, requestId, ...body })
  if (isNew) runner.start({ env: body.env, cols: body.cols, rows: body.rows })
  return respondJson(viewSession(runner, deps.epochMs), { status: isNew ? 201 : 200 })
}

/** `GET /sessions/:id` */
export function showSession(id: string, deps: SessionRouteDependencies): Response {
  return respondJson(viewSession(deps.registry.find(checkSessionId(id)), deps.epochMs))
}

/** `DELETE /sessions/:id`: ends the process; attached clients see its exit. */
export function endSession(id: string, deps: SessionRouteDependencies): Response {
  const runner = deps.registry.find(checkSessionId(id))
  runner.end()
  return respondJson(viewSession(runner, deps.epochMs), { status: 202 })
}

/** `POST /sessions/:id/signal` */
export async function signalSession(
  request: Request,
  id: string,
  deps: SessionRouteDependencies,
): Promise<Response> {
  const runner = deps.registry.find(checkSessionId(id))
  const body = await readJson(request)
  const signal: unknown =
    typeof body === 'object' && body !== null && 'signal' in body ? body.signal : undefined
  if (typeof signal !== 'string' || signalNumber(signal) === undefined)
    refuse('bad_request', 'Cannot send the signal: expected a name such as "SIGTERM"')
  if (runner.session.state.kind !== 'running')
    refuse('session_gone', 'Cannot send the signal: the process has ended')
  runner.signal(signal)
  return respondJson({ sent: signal })
}

/** `GET /sessions/:id/output?from=OFFSET`: bytes of both streams in log order, with their offsets in headers. */
export function readOutput(id: string, query: URLSearchParams, deps: SessionRouteDependencies): Response {
  const { log, state } = deps.registry.find(checkSessionId(id)).session
  const text = query.get('from') ?? '0'
  if (!/^(0|[1-9][0-9]{0,15})$/.test(text))
    refuse('bad_request', 'Cannot use parameter "from": expected an offset')
  const requested = Number(text)
  if (requested > log.end)
    refuse('bad_request', `Cannot read from ${requested}: the output ends at ${log.end}`)
  const from = Math.max(requested, log.start)
  const chunks: Uint8Array[] = []
  let next = from
  while (next - from < MAX_OUTPUT_BYTES) {
    const slice = log.read(next, Math.min(limits.MAX_DATA_BYTES, MAX_OUTPUT_BYTES - (next - from)))
    if (slice === undefined) break
    chunks.push(slice.bytes)
    next = slice.end
  }
  return new Response(new Blob(chunks as Uint8Array<ArrayBuffer>[]), {
    headers: {
      'content-type': 'application/octet-stream',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'sandwire-from': String(from),
      'sandwire-next': String(next),
      'sandwire-end': String(log.end),
      'sandwire-state': state.kind,
    },
  })
}

const filterSchema = schema.record({
  identity: schema.optional(schema.text(256)),
  login: schema.optional(schema.text(64)),
  grant: schema.optional(schema.text(128)),
  session: schema.optional(schema.text(128)),
  attachment: schema.optional(schema.text(32)),
  endSessions: schema.optional(schema.bool),
})

/**
 * `POST /attachments/close`: closes the attachments that match every given field with `revoked`. With `endSessions`, also ends
 * the sessions that the grant authorized to start.
 */
export async function closeAttachments(
  request: Request,
  { registry, revokeViewers }: SessionRouteDependencies,
): Promise<Response> {
  const { endSessions = false, ...filter } = filterSchema.decode(await readJson(request)) ?? {}
  if (Object.keys(filter).length === 0)
    throw new SandwireError('bad_request', 'Cannot close attachments: the filter is empty')
  if (filter.attachment !== undefined && filter.session === undefined)
    throw new SandwireError('bad_request', 'Cannot close an attachment: its session is missing')
  if (endSessions && filter.grant === undefined)
    throw new SandwireError('bad_request', 'Cannot end sessions: the grant is missing')
  const closed = registry.revoke(filter) + revokeViewers(filter)
  if (endSessions && filter.grant !== undefined) registry.endSessionsOf(filter.grant)
  return respondJson({ closed })
}
