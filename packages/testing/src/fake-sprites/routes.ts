import { mkdirSync } from 'node:fs'
import path from 'node:path'
import type { SpritesBehavior } from './behavior.ts'
import { type ExecRequest, ExecSession } from './exec-session.ts'
import { handleFiles } from './files.ts'
import { FakeService, type ServiceDefinition } from './services.ts'
import { FakeSprite } from './sprite.ts'

/** Version of the environment in a sprite; an attach by path needs at least 0.0.1-rc30. */
const SPRITE_VERSION = '0.0.1-rc31'

export interface SpritesState {
  readonly folder: string
  readonly sprites: Map<string, FakeSprite>
  readonly behavior: SpritesBehavior
  readonly url: () => string
}

function apiError(status: number, error: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error }, { status, headers })
}

function ndjson(events: readonly object[]): Response {
  const lines = events.map((event) => `${JSON.stringify({ ...event, timestamp: Date.now() })}\n`).join('')
  return new Response(lines, { headers: { 'content-type': 'application/x-ndjson' } })
}

function describeSprite(sprite: FakeSprite, state: SpritesState): object {
  return {
    id: sprite.id,
    name: sprite.name,
    organization: 'test',
    url: `${state.url()}/sprite-url/${sprite.name}`,
    url_settings: { auth: sprite.urlAuth },
    status: sprite.status,
    created_at: sprite.createdAt,
    updated_at: sprite.createdAt,
  }
}

/** A Go duration such as `60s` or `0`; undefined when absent. */
function parseDuration(text: string | null): number | undefined {
  if (text === null) return undefined
  const [, amount = '0', unit = 's'] = /^([0-9.]+)(ms|s|m|h)?$/.exec(text) ?? []
  const factor = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[unit] ?? 1000
  return Number(amount) * factor
}

/** Default for commands without a terminal. */
const DEFAULT_AFTER_DISCONNECT_MS = 10_000

/** Decodes the query of an exec. */
export function parseExec(query: URLSearchParams): ExecRequest {
  const cmd = query.getAll('cmd')
  const argv = cmd.length > 0 ? cmd : [query.get('path') ?? 'bash']
  const isTty = query.get('tty') === 'true'
  const afterMs = parseDuration(query.get('max_run_after_disconnect'))
  const limitMs = afterMs ?? (isTty ? 0 : DEFAULT_AFTER_DISCONNECT_MS)
  return {
    argv,
    env: query.getAll('env'),
    dir: query.get('dir') ?? undefined,
    isTty,
    hasStdin: query.has('stdin') ? query.get('stdin') === 'true' : isTty,
    cols: Number(query.get('cols') ?? 80),
    rows: Number(query.get('rows') ?? 24),
    // Zero means for ever, for terminals.
    afterDisconnectMs: isTty && limitMs === 0 ? undefined : limitMs,
  }
}

/** `SIGTERM`, `TERM`, `term` or `15`. */
export function parseSignal(text: string): NodeJS.Signals {
  const numbers: Readonly<Record<string, NodeJS.Signals>> = {
    '1': 'SIGHUP',
    '2': 'SIGINT',
    '9': 'SIGKILL',
    '15': 'SIGTERM',
  }
  const name = text.toUpperCase()
  return numbers[text] ?? ((name.startsWith('SIG') ? name : `SIG${name}`) as NodeJS.Signals)
}

/** POST exec: the frames of a command without a terminal, one after the other. */
async function runCommand(
  sprite: FakeSprite,
  request: Request,
  behavior: SpritesBehavior,
): Promise<Response> {
  await sprite.wake()
  const query = new URL(request.url).searchParams
  const input = new Uint8Array(await request.arrayBuffer())
  const session = new ExecSession(
    sprite,
    { ...parseExec(query), isTty: false },
    { ...behavior, hasFastPath: false, execEndMs: 0, sendsExitFrame: true },
  )
  const frames: Uint8Array[] = []
  const done = Promise.withResolvers<void>()
  session.attach(
    {
      sendText: () => undefined,
      sendBytes: (bytes) => void frames.push(bytes),
      end: () => done.resolve(),
    },
    true,
  )
  if (input.length > 0) session.write(input)
  session.endInput()
  await done.promise
  return new Response(new Uint8Array(Buffer.concat(frames)), {
    headers: { 'content-type': 'application/octet-stream' },
  })
}

async function killSession(sprite: FakeSprite, id: string, query: URLSearchParams): Promise<Response> {
  const session = sprite.sessions.get(id)
  if (session === undefined) return new Response(`session not found: ${id}`, { status: 404 })
  const signal = parseSignal(query.get('signal') ?? 'SIGTERM')
  const timeoutMs = parseDuration(query.get('timeout')) ?? 10_000
  session.signal(signal)
  const sent = {
    type: 'signal',
    message: `Signaling ${signal} to process group ${id}`,
    signal,
    pid: Number(id),
  }
  const hasEnded = await Promise.race([
    session.ended.then(() => true),
    Bun.sleep(timeoutMs).then(() => false),
  ])
  if (hasEnded)
    return ndjson([sent, { type: 'exited', message: 'Process exited' }, { type: 'complete', exit_code: 0 }])
  session.signal('SIGKILL')
  await session.ended
  return ndjson([
    sent,
    { type: 'timeout', message: 'Timed out' },
    { type: 'killed', message: 'Killed' },
    { type: 'complete', exit_code: 137 },
  ])
}

async function handleExec(
  sprite: FakeSprite,
  rest: readonly string[],
  request: Request,
  state: SpritesState,
): Promise<Response> {
  const query = new URL(request.url).searchParams
  const [id, action] = rest
  if (request.method === 'HEAD') return new Response(null, { headers: { 'sprite-version': SPRITE_VERSION } })
  if (id === undefined && request.method === 'POST') return runCommand(sprite, request, state.behavior)
  if (id === undefined) {
    const sessions = [...sprite.sessions.values()].map((session) => session.describe())
    return Response.json({ count: sessions.length, sessions })
  }
  if (action === 'kill' && request.method === 'POST') return killSession(sprite, id, query)
  if (sprite.sessions.has(id)) return apiError(426, 'upgrade required')
  return new Response(`session not found: ${id}`, { status: 404 })
}

function logFiles(name: string): object {
  return { combined: `/.sprite/logs/services/${name}.log` }
}

async function putService(sprite: FakeSprite, name: string, request: Request): Promise<Response> {
  const { services } = sprite
  const definition = (await request.json()) as ServiceDefinition
  const hasPort = [...services.values()].some(
    (other) => other.name !== name && other.definition.http_port !== undefined,
  )
  if (definition.http_port !== undefined && hasPort)
    return apiError(409, 'another service already has an HTTP port configured')
  await sprite.wake()
  const known = services.get(name)
  await known?.stop()
  const service = known ?? new FakeService(sprite, name, definition)
  service.definition = definition
  services.set(name, service)
  service.start()
  return ndjson([{ type: 'started' }, { type: 'complete', log_files: logFiles(name) }])
}

async function handleServices(
  sprite: FakeSprite,
  rest: readonly string[],
  request: Request,
): Promise<Response> {
  const [name, action] = rest
  const { services } = sprite
  if (name === undefined) return Response.json([...services.values()].map((service) => service.describe()))
  if (request.method === 'POST' && name === 'signal') {
    const body = (await request.json()) as { readonly name: string; readonly signal: string }
    const target = services.get(body.name)
    if (target === undefined) return apiError(404, 'service not found')
    return target.signal(parseSignal(body.signal))
      ? new Response(null, { status: 204 })
      : apiError(409, 'not running')
  }
  const known = services.get(name)
  if (request.method === 'PUT') return putService(sprite, name, request)
  if (known === undefined) return apiError(404, 'service not found')
  if (request.method === 'DELETE') {
    await known.stop()
    services.delete(name)
    return new Response(null, { status: 204 })
  }
  if (action === 'logs')
    return ndjson(
      known
        .logs(Number(new URL(request.url).searchParams.get('lines') ?? 100))
        .split('\n')
        .map((data) => ({ type: 'stdout', data })),
    )
  if (request.method !== 'POST') return Response.json(known.describe())
  await sprite.wake()
  if (action === 'stop' || action === 'restart') await known.stop()
  if (action === 'start' || action === 'restart') known.start()
  return ndjson([
    { type: action === 'stop' ? 'stopped' : 'started' },
    { type: 'complete', log_files: logFiles(name) },
  ])
}

async function handleCheckpoints(
  sprite: FakeSprite,
  rest: readonly string[],
  request: Request,
): Promise<Response> {
  const [id, action] = rest
  const show = ({ id: version, createTime, comment }: (typeof sprite.checkpoints)[number]): object => ({
    id: version,
    create_time: createTime,
    ...(comment !== undefined && { comment }),
  })
  if (id === undefined) return Response.json(sprite.checkpoints.toReversed().map(show))
  const found = sprite.checkpoints.find((each) => each.id === id)
  if (found === undefined) return apiError(404, 'checkpoint not found')
  if (action !== 'restore') return Response.json(show(found))
  if (request.method !== 'POST') return apiError(405, 'method not allowed')
  await sprite.restore(found)
  return ndjson([
    { type: 'info', data: 'Restoring' },
    { type: 'complete', data: 'Restored' },
  ])
}

/** Routes of one sprite. */
async function handleSprite(
  sprite: FakeSprite,
  rest: readonly string[],
  request: Request,
  state: SpritesState,
): Promise<Response> {
  const [area, ...more] = rest
  switch (area) {
    case undefined: {
      if (request.method === 'DELETE') {
        state.sprites.delete(sprite.name)
        await sprite.destroy()
        return new Response(null, { status: 204 })
      }
      if (request.method === 'PUT') {
        const body = (await request.json()) as { readonly url_settings?: { readonly auth?: string } }
        sprite.urlAuth = body.url_settings?.auth ?? sprite.urlAuth
      }
      return Response.json(describeSprite(sprite, state), { headers: { 'sprite-version': SPRITE_VERSION } })
    }
    case 'exec':
      return handleExec(sprite, more, request, state)
    case 'services':
      return handleServices(sprite, more, request)
    case 'fs':
      return handleFiles(sprite, more[0] ?? '', request, state.behavior)
    case 'checkpoint': {
      const { comment } = (await request.json().catch(() => ({}))) as { readonly comment?: string }
      const made = sprite.checkpoint(comment)
      return ndjson([
        { type: 'info', data: 'Creating' },
        { type: 'complete', data: `Checkpoint ${made.id} created` },
      ])
    }
    case 'checkpoints':
      return handleCheckpoints(sprite, more, request)
    case 'policy':
      return request.method === 'POST'
        ? new Response(null, { status: state.behavior.policyStatus })
        : Response.json({ rules: [] })
    case 'restart':
      await sprite.freezeCold()
      await sprite.wake()
      return Response.json(describeSprite(sprite, state))
    case 'check':
      return Response.json({ sprite_name: sprite.name, sprite_id: sprite.id, status: 'ok', reason: '' })
    default:
      return apiError(404, 'not found')
  }
}

/** Creates a sprite; its name is free. */
export function addSprite(state: SpritesState, name: string): FakeSprite {
  const id = `sprite-${crypto.randomUUID()}`
  const root = path.join(state.folder, id)
  mkdirSync(root, { recursive: true })
  const sprite = new FakeSprite(name, id, root)
  state.sprites.set(name, sprite)
  return sprite
}

/** Answers a request that is not an upgrade. */
export async function handleRequest(request: Request, state: SpritesState): Promise<Response> {
  const [, version, resource, name, ...rest] = new URL(request.url).pathname
    .split('/')
    .map(decodeURIComponent)
  if (version !== 'v1' || resource !== 'sprites') return apiError(404, 'not found')
  if (name === undefined || name === '') {
    if (request.method === 'POST') {
      const body = (await request.json()) as { readonly name: string }
      if (state.sprites.has(body.name)) return apiError(409, 'sprite already exists')
      const sprite = addSprite(state, body.name)
      await sprite.wake()
      return Response.json(describeSprite(sprite, state), { status: 201 })
    }
    const prefix = new URL(request.url).searchParams.get('prefix') ?? ''
    const found = [...state.sprites.values()].filter((each) => each.name.startsWith(prefix))
    return Response.json({
      sprites: found.map((each) => describeSprite(each, state)),
      has_more: false,
      next_continuation_token: '',
    })
  }
  const sprite = state.sprites.get(name)
  if (sprite === undefined) return apiError(404, 'sprite not found')
  return handleSprite(sprite, rest, request, state)
}
