import {
  agentStartSchema,
  approvalSchema,
  type EventRange,
  type JournalEntry,
  type LineRange,
  MAX_RANGE_EVENTS,
  MAX_WAIT_SECONDS,
  messageSchema,
  type NumberedEvent,
  RUN_ID,
  stopSchema,
} from '@sandwire/agent'
import { SandwireError, type schema } from '@sandwire/protocol'
import { closeSync, openSync } from 'node:fs'
import { readBytes } from '../http/request-body.ts'
import { respondJson } from '../http/respond.ts'
import type { AgentRegistry } from './agent-registry.ts'
import type { AgentRun } from './agent-run.ts'
import { readChunks } from './file-chunks.ts'
import { type EventFeed, MAX_VIEWERS } from './event-feed.ts'
import { streamEvents } from './event-stream.ts'
import type { JournalFile } from './journal-file.ts'
import type { RunRecord } from './run-record.ts'

/** A task, a system prompt, a schema and an environment. */
const MAX_START_BYTES = 2 * 1024 * 1024
const MAX_BODY_BYTES = 512 * 1024
/** Of a range of events, besides the one that exceeds it. */
const MAX_RANGE_BYTES = 1024 * 1024 - 64 * 1024

interface AgentCall {
  readonly request: Request
  readonly url: URL
  readonly id: string
}

export type AgentHandler = (call: AgentCall, agents: AgentRegistry) => Response | Promise<Response>

/** Routes that accept query parameters. */
export const AGENT_PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  '/agents/change': ['ref'],
  '/agents/:id/events': ['after', 'format', 'limit', 'wait'],
}

/** Routes that control uses to run agents; `packages/agent/src/api.ts` describes them. */
export const AGENT_ROUTES: Readonly<Record<string, Readonly<Record<string, AgentHandler>>>> = {
  '/agents': { GET: (_, agents) => respondJson({ agents: agents.list() }) },
  '/agents/change': { GET: readChange },
  '/agents/:id': {
    GET: ({ id }, agents) => respondJson(agents.view(id)),
    PUT: startAgent,
    DELETE: removeAgent,
  },
  '/agents/:id/events': { GET: readEvents },
  '/agents/:id/messages': { POST: sendMessage },
  '/agents/:id/approvals': { POST: answerApproval },
  '/agents/:id/interrupt': { POST: interrupt },
  '/agents/:id/stop': { POST: stop },
  '/agents/:id/result': { GET: showResult },
  '/agents/:id/diff': { GET: readDiff },
  '/agents/:id/pack': { GET: readPack },
}

async function startAgent({ request, id }: AgentCall, agents: AgentRegistry): Promise<Response> {
  if (!RUN_ID.test(id)) throw invalid('the id')
  const bytes = await readBytes(request, MAX_START_BYTES)
  const start = agentStartSchema.decode(parse(bytes))
  if (start === undefined) throw invalid('the body')
  const hash = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  const { view, isNew } = agents.start(id, start, hash)
  return respondJson(view, { status: isNew ? 201 : 200 })
}

function removeAgent({ id }: AgentCall, agents: AgentRegistry): Response {
  agents.remove(id)
  return new Response(null, { status: 204 })
}

async function readEvents({ request, url, id }: AgentCall, agents: AgentRegistry): Promise<Response> {
  const record = agents.record(id)
  const source = selectSource(record, url)
  const { feed, file } = source
  const after = readAfter(url, request.headers)
  if (request.headers.get('accept')?.includes('text/event-stream') === true) {
    checkViewers(feed)
    return streamEvents(feed, after)
  }
  const limit = numberOf(url, 'limit', MAX_RANGE_EVENTS) ?? MAX_RANGE_EVENTS
  const waitSeconds = numberOf(url, 'wait', MAX_WAIT_SECONDS) ?? 0
  let entries = file.read(after, limit, MAX_RANGE_BYTES)
  if (entries.length === 0 && waitSeconds > 0 && record.result === undefined) {
    checkViewers(feed)
    await nextEntry(source, waitSeconds * 1000, request.signal)
    entries = file.read(after, limit, MAX_RANGE_BYTES)
  }
  const common = { journal: record.meta.journal, state: agents.view(id).state, lastSeq: file.lastSeq }
  const parsed = entries.map(({ json }) => JSON.parse(json) as unknown)
  const range: EventRange | LineRange =
    file === record.journal
      ? { ...common, lines: parsed as readonly JournalEntry[] }
      : { ...common, events: parsed as readonly NumberedEvent[] }
  return respondJson(range)
}

interface EventSource {
  readonly feed: EventFeed
  readonly file: JournalFile
}

/** What a viewer follows: `format=lines` is the journal, else the events. */
export function selectSource(record: RunRecord, url: URL): EventSource {
  const format = url.searchParams.get('format') ?? 'events'
  if (format === 'events') return { feed: record.feed, file: record.events }
  if (format === 'lines') return { feed: record.lineFeed, file: record.journal }
  throw invalid('the parameter "format"')
}

/** The sequence number after which a viewer wants events; `Last-Event-ID` is what an EventSource repeats when it reconnects. */
export function readAfter(url: URL, headers: Headers): number {
  const last = headers.get('last-event-id')
  if (last !== null && /^[0-9]{1,15}$/.test(last)) return Number(last)
  return numberOf(url, 'after', Number.MAX_SAFE_INTEGER) ?? 0
}

export function checkViewers(feed: EventFeed): void {
  if (feed.size >= MAX_VIEWERS)
    throw new SandwireError('too_many_attachments', 'Cannot show the run: too many clients follow it')
}

/** Resolves at the next entry, or after the time. */
async function nextEntry({ feed, file }: EventSource, waitMs: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const viewer = { send: () => (resolve(), false), partial: () => undefined, end: resolve }
  feed.add(viewer, file.lastSeq)
  const timer = setTimeout(resolve, waitMs)
  signal.addEventListener('abort', () => resolve(), { once: true })
  await promise
  clearTimeout(timer)
  feed.remove(viewer)
}

async function sendMessage(call: AgentCall, agents: AgentRegistry): Promise<Response> {
  const message = await decode(call.request, messageSchema)
  const run = activeRun(call.id, agents)
  run.on({ kind: 'message', ...message })
  return respondJson(run.driver.messageView(message.id))
}

async function answerApproval(call: AgentCall, agents: AgentRegistry): Promise<Response> {
  const answer = await decode(call.request, approvalSchema)
  const run = activeRun(call.id, agents)
  run.on({ kind: 'approval', ...answer })
  return respondJson(run.driver.approvalView(answer.requestId))
}

function interrupt({ id }: AgentCall, agents: AgentRegistry): Response {
  activeRun(id, agents).on({ kind: 'interrupt' })
  return respondJson(agents.view(id))
}

async function stop(call: AgentCall, agents: AgentRegistry): Promise<Response> {
  const body = await decode(call.request, stopSchema)
  agents.run(call.id)?.on({ kind: 'stop', ...body })
  return respondJson(agents.view(call.id))
}

function showResult({ id }: AgentCall, agents: AgentRegistry): Response {
  const { result } = agents.record(id)
  if (result === undefined)
    throw new SandwireError('conflict', 'Cannot show the result: the run has not ended')
  return respondJson(result)
}

function readDiff({ id }: AgentCall, agents: AgentRegistry): Response {
  const { result, patchFile } = agents.record(id)
  if (result === undefined) throw new SandwireError('conflict', 'Cannot show the diff: the run has not ended')
  if (result.diff === null) throw new SandwireError('not_found', 'The run has no diff')
  return respondFile(patchFile, result.diff.bytes, 'text/x-diff')
}

function readPack({ id }: AgentCall, agents: AgentRegistry): Response {
  const { result, packFile } = agents.record(id)
  const packBytes = result?.diff?.packBytes ?? null
  if (packBytes === null) throw new SandwireError('not_found', 'The run has no pack')
  return respondFile(packFile, packBytes, 'application/x-git-packed-objects')
}

async function readChange({ url }: AgentCall, agents: AgentRegistry): Promise<Response> {
  const { change, pack } = await agents.readChange(url.searchParams.get('ref') ?? undefined)
  return new Response(new Blob([`${JSON.stringify(change)}\n`, pack]), {
    headers: { 'content-type': 'application/octet-stream', 'cache-control': 'no-store' },
  })
}

function respondFile(file: string, bytes: number, type: string): Response {
  return new Response(streamFile(file), {
    headers: {
      'content-length': String(bytes),
      'content-type': type,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
  })
}

function streamFile(file: string): ReadableStream<Uint8Array> {
  const fd = openSync(file, 'r')
  const chunks = readChunks(fd)
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await chunks.next()
        if (next.done !== true) return controller.enqueue(next.value)
        closeSync(fd)
        controller.close()
      },
      cancel: () => closeSync(fd),
    },
    { highWaterMark: 0 },
  )
}

function activeRun(id: string, agents: AgentRegistry): AgentRun {
  const run = agents.run(id)
  if (run === undefined) throw new SandwireError('conflict', 'Cannot reach the agent: the run has ended')
  return run
}

async function decode<T>(request: Request, bodySchema: schema.Schema<T>): Promise<T> {
  const body = bodySchema.decode(parse(await readBytes(request, MAX_BODY_BYTES)))
  if (body === undefined) throw invalid('the body')
  return body
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new SandwireError('bad_request', 'Cannot read the body: not JSON')
  }
}

function numberOf(url: URL, name: string, max: number): number | undefined {
  const text = url.searchParams.get(name)
  if (text === null) return undefined
  if (!/^[0-9]{1,16}$/.test(text) || Number(text) > max) throw invalid(`the parameter "${name}"`)
  return Number(text)
}

function invalid(what: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use ${what}: it is malformed`)
}
