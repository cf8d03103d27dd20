import { attach } from '@sandwire/client'
import {
  eventually,
  type FaultProxy,
  openFaultProxy,
  OPCODE,
  openRawWebSocketOrThrow,
  PtyClient,
} from '@sandwire/testing'
import type { RunningHost } from '../../test/e2e/support/control.ts'
import { openParts } from '../competitors.ts'
import { findIsolationProblem, openHost } from '../peers/control-plane.ts'
import { findSpritesProblem, openSpritesHost, SPRITE_SANDBOX, type SpritesHost } from '../peers/sprites.ts'
import { expectGood } from '../peers/workspace.ts'
import { type Absent, below, type Competitor, type Row } from '../row.ts'
import { median } from '../statistics.ts'
import { openWebSocketStream } from '../peers/web-socket-stream.ts'
import type { Stream } from '../peers/stream.ts'
import type { Scratch } from '../scratch.ts'
import { measureEcho } from './echo.ts'
import { download, upload, watchGrowth } from './file-transfer.ts'

const WITH_SPRITES = 'sandwire with sprites'
const READY_MS = 5_000
const REATTACH_MS = 10_000
const ROUND_TRIP_US = 150_000
const READY_TIMES = 10
/** Per dialect and measurement. */
const DISCONNECTS = 50
/** What front ends of the compat API wait before they connect again. */
const RECONNECT_MS = 500
const WAIT = { timeoutMs: 20_000 }
/** Time for the queues to fill. */
const STALL_MS = 5_000
const LARGE_BYTES = 256_000_000
/** The bound of a terminal's connection, and what the allocator keeps. */
const MOST_MIB = 64

/** Rows of which every figure needs the fake Sprites API. */
function openSprites<Part extends string>(
  parts: readonly [Part, ...Part[]],
  measure: (sprites: SpritesHost, scratch: Scratch) => Promise<Readonly<Record<Part, number>>>,
) {
  return async ({ scratch }: { readonly scratch: Scratch }): Promise<readonly (Competitor | Absent)[]> => {
    const problem = findSpritesProblem()
    if (problem !== undefined) return [{ name: parts[0], absent: problem }]
    const sprites = await openSpritesHost()
    return openParts({
      parts,
      measure: () => measure(sprites, scratch),
      close: async () => sprites[Symbol.asyncDispose](),
    })
  }
}

async function time(action: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await action()
  return performance.now() - startMs
}

const slowest = (times: readonly number[]): number => Math.max(...times)

async function measureReady(sprites: SpritesHost) {
  const { host, api } = sprites
  const post = (verb: string) =>
    expectGood(host.fetch(`/api/sandboxes/${SPRITE_SANDBOX}/${verb}`, { method: 'POST' }))
  const starts: number[] = []
  const thaws: number[] = []
  for (let left = READY_TIMES; left > 0; left -= 1) {
    await post('stop')
    api.sprite('dev').freeze()
    starts.push(await time(() => post('start')))
    api.sprite('dev').freeze()
    thaws.push(await time(() => expectGood(sprites.fetch('compat/tree?path=.'))))
  }
  return {
    start: median(starts),
    'slowest start': slowest(starts),
    thaw: median(thaws),
    'slowest thaw': slowest(thaws),
  }
}

export const spritesReady: Row = {
  id: 'sprites-ready',
  title: 'readiness in a warm sprite',
  unit: 'ms',
  about: `${READY_TIMES} starts of the sandbox in a frozen sprite, and first listings of files after it froze.`,
  targets: [below('slowest start', READY_MS, 'ms'), below('slowest thaw', READY_MS, 'ms')],
  open: openSprites(['start', 'slowest start', 'thaw', 'slowest thaw'], measureReady),
}

/** Breaks the connections of a client, in one of four ways in turn. */
function breakClient({ api }: SpritesHost, proxy: FaultProxy, turn: number): void {
  const sprite = api.sprite('dev')
  let refusals = 2
  switch (turn % 4) {
    case 0:
      proxy.disconnectAll('reset')
      break
    case 1:
      sprite.disconnectAll()
      break
    case 2:
      sprite.freeze()
      break
    default:
      // The API refuses the next connections too.
      api.behavior.intercept = ({ url }) =>
        /\/(?:exec\/|proxy)/.test(url) && refusals-- > 0 ? new Response(null, { status: 503 }) : undefined
      sprite.disconnectAll()
  }
}

const hostHeaders = (host: RunningHost) => ({ ...host.headers, host: `127.0.0.1:${host.port}` })

/** Times from losing the connection to the next welcome, of a client that resumes. */
async function reattachStream(sprites: SpritesHost, proxy: FaultProxy): Promise<number[]> {
  const times: number[] = []
  let lostMs: number | undefined
  let isAttached = false
  const handle = attach({
    url: `http://127.0.0.1:${proxy.port}`,
    request: { sandbox: SPRITE_SANDBOX, cmd: 'cat', mode: 'pipe' },
    credentials: async () => ({ headers: hostHeaders(sprites.host) }),
    onOutput: () => {},
  })
  handle.status.subscribe(({ kind }) => {
    isAttached = kind === 'attached'
    if (kind === 'reconnecting') lostMs ??= performance.now()
    if (kind !== 'attached' || lostMs === undefined) return
    times.push(performance.now() - lostMs)
    lostMs = undefined
  })
  await eventually(() => isAttached, { what: 'the stream', ...WAIT })
  for (let turn = 0; turn < DISCONNECTS; turn += 1) {
    breakClient(sprites, proxy, turn)
    await eventually(() => times.length > turn && isAttached, { what: `reattachment ${turn}`, ...WAIT })
  }
  handle.eof()
  await handle.exit
  return times
}

/** A kind of sessions of the compat API. */
interface CompatSessions {
  readonly path: string
  /** Name of the session, by which it is found again. */
  readonly name: (client: PtyClient) => Promise<string>
  readonly begin: (client: PtyClient) => Promise<void>
  /** Throws unless it is the session that was begun. */
  readonly use: (client: PtyClient, turn: number) => Promise<void>
}

const TERMINALS: CompatSessions = {
  path: '/ws/pty',
  name: (client) => client.name(),
  begin: async (client) => {
    client.type('mark=the""same; echo mar""ked\n')
    await client.waitForOutput('marked')
  },
  use: async (client, turn) => {
    client.type(`echo "$mark shell ${turn}"\n`)
    await client.waitForOutput(`thesame shell ${turn}`)
  },
}

async function say(client: PtyClient, text: string): Promise<void> {
  client.send({ type: 'user', message: `say ${text}` })
  const isSaid = (): boolean => client.messages.some((message) => JSON.stringify(message).includes(text))
  await eventually(isSaid, { what: text, ...WAIT })
}

const AGENTS: CompatSessions = {
  path: '/ws/claude-stream',
  name: async (client) => String((await client.first('system'))['session_id']),
  begin: (client) => say(client, 'begun'),
  use: async (client, turn) => {
    if (client.messages[0]?.['resumed'] !== true) throw new Error('Another session was started')
    await say(client, `turn ${turn}`)
  },
}

/** The same of a session of the compat API. */
async function reattachSession(
  sessions: CompatSessions,
  sprites: SpritesHost,
  proxy: FaultProxy,
): Promise<number[]> {
  const headers = hostHeaders(sprites.host)
  const connect = (query: Readonly<Record<string, string>>): PtyClient =>
    new PtyClient({ port: proxy.port, headers }, `${sessions.path}?${new URLSearchParams(query).toString()}`)
  const times: number[] = []
  let client = connect({})
  let session = await sessions.name(client)
  await sessions.begin(client)
  for (let turn = 0; turn < DISCONNECTS; turn += 1) {
    breakClient(sprites, proxy, turn)
    await client.closed()
    const lostMs = performance.now()
    do {
      await Bun.sleep(RECONNECT_MS)
      client = connect({ session_id: session, resume: '1' })
      await eventually(() => client.messages.length > 0 || client.close !== undefined, {
        what: 'an answer',
        ...WAIT,
      })
    } while (client.messages.length === 0)
    times.push(performance.now() - lostMs)
    session = await sessions.name(client)
    await sessions.use(client, turn)
  }
  await client.disconnect()
  return times
}

async function measureReattach(sprites: SpritesHost) {
  await using proxy = openFaultProxy({ target: { port: sprites.host.port } })
  const streams = await reattachStream(sprites, proxy)
  const terminals = await reattachSession(TERMINALS, sprites, proxy)
  const agents = await reattachSession(AGENTS, sprites, proxy)
  return {
    'sandwire.v1': median(streams),
    'sandwire.v1 slowest': slowest(streams),
    '/ws/pty': median(terminals),
    '/ws/pty slowest': slowest(terminals),
    '/ws/claude-stream': median(agents),
    '/ws/claude-stream slowest': slowest(agents),
  }
}

export const spritesReattach: Row = {
  id: 'sprites-reattach',
  title: 'reattach to a sprite',
  unit: 'ms',
  about: `${DISCONNECTS} broken connections each: of the client, of the API, with refused attaches, and by a sprite that freezes.`,
  targets: ['sandwire.v1', '/ws/pty', '/ws/claude-stream'].map((each) =>
    below(`${each} slowest`, REATTACH_MS, 'ms'),
  ),
  open: openSprites(
    [
      'sandwire.v1',
      'sandwire.v1 slowest',
      '/ws/pty',
      '/ws/pty slowest',
      '/ws/claude-stream',
      '/ws/claude-stream slowest',
    ],
    measureReattach,
  ),
}

/** A terminal of the compat API in which `cat` runs, for the row's common measurement. */
async function connectTerminal(host: RunningHost): Promise<Stream> {
  const stream = await openWebSocketStream({
    url: `ws://127.0.0.1:${host.port}/ws/pty?provider=shell`,
    headers: host.headers,
    unwrap: () => undefined,
    unwrapText: (text) => {
      const message: unknown = JSON.parse(text)
      const isOutput = Reflect.get(Object(message), 'type') === 'output'
      return isOutput ? Buffer.from(String(Reflect.get(Object(message), 'data'))) : undefined
    },
    wrap: (bytes) => JSON.stringify({ type: 'input', data: Buffer.from(bytes).toString() }),
  })
  stream.write(Buffer.from('stty raw -echo; printf "rea""dy"; exec cat\n'))
  return stream
}

function openEcho(name: string, host: RunningHost, close: () => PromiseLike<void>): Competitor {
  return {
    name,
    side: 'ours',
    measure: () => measureEcho({ connect: () => connectTerminal(host) }, 'pty'),
    [Symbol.asyncDispose]: async () => close(),
  }
}

export const spritesEcho: Row = {
  id: 'sprites-echo',
  title: 'echo of `/ws/pty`',
  unit: 'µs',
  about: 'Median round trip of one byte, in sandbox mode with bubblewrap and with a sprite.',
  targets: [below(WITH_SPRITES, ROUND_TRIP_US, 'µs')],
  open: async () => {
    const [isolation, sprites] = [findIsolationProblem(), findSpritesProblem()]
    const competitors: (Competitor | Absent)[] = []
    if (isolation !== undefined) competitors.push({ name: 'sandwire through control', absent: isolation })
    else {
      const host = await openHost(async (opened) => opened, { env: { WORKSPACE_MODE: 'sandbox' } })
      competitors.push(openEcho('sandwire through control', host, host.stop))
    }
    if (sprites !== undefined) return [...competitors, { name: WITH_SPRITES, absent: sprites }]
    const opened = await openSpritesHost()
    return [...competitors, openEcho(WITH_SPRITES, opened.host, () => opened[Symbol.asyncDispose]())]
  },
}

/** Growth of workerd while something is not read. */
async function stall(sprites: SpritesHost, action: () => Promise<AsyncDisposable>): Promise<number> {
  const [growth = 0] = await watchGrowth([sprites.workerd], async () => {
    await using _ = await action()
    await Bun.sleep(STALL_MS)
  })
  return growth
}

async function openStalledDownload({ fetch }: SpritesHost): Promise<AsyncDisposable> {
  const response = await expectGood(fetch('file?path=large'))
  return { [Symbol.asyncDispose]: async () => response.body?.cancel() }
}

/** `yes` in a terminal whose client does not read. */
async function openStalledTerminal({ host }: SpritesHost): Promise<AsyncDisposable> {
  const { port, headers } = host
  const socket = await openRawWebSocketOrThrow({ port, headers, path: '/ws/pty?provider=shell' })
  await socket.sendFrame({ opcode: OPCODE.text, payload: JSON.stringify({ type: 'input', data: 'yes\n' }) })
  socket.pause()
  return socket
}

async function measureMemory(sprites: SpritesHost, scratch: Scratch) {
  const workload = await scratch.workload(LARGE_BYTES)
  const bothWays = async (): Promise<void> => {
    await upload(sprites, workload)
    await download(sprites, workload)
  }
  await bothWays()
  const [transfers = 0] = await watchGrowth([sprites.workerd], bothWays)
  return {
    transfers,
    'stalled download': await stall(sprites, () => openStalledDownload(sprites)),
    'stalled terminal': await stall(sprites, () => openStalledTerminal(sprites)),
  }
}

export const spritesMemory: Row = {
  id: 'sprites-memory',
  title: 'growth of control with a sprite',
  unit: 'MiB',
  digits: 1,
  about: `Highest growth of workerd while ${LARGE_BYTES / 1e6} MB go each way, and while a download, and \`yes\` in a terminal, are not read for ${STALL_MS / 1000} s.`,
  targets: [
    below('transfers', MOST_MIB, 'MiB'),
    below('stalled download', MOST_MIB, 'MiB'),
    below('stalled terminal', MOST_MIB, 'MiB'),
  ],
  open: openSprites(['transfers', 'stalled download', 'stalled terminal'], measureMemory),
}
