import { attach } from '@sandwire/client'
import {
  encodeFrame,
  eventually,
  OPCODE,
  openRawTcp,
  openRawWebSocket,
  type Random,
  type RawWebSocket,
  upgradeRequest,
} from '@sandwire/testing'
import type { RunningSandboxd } from '../e2e/support/sandboxd.ts'
import { mutateFrame, mutateMessage, mutateText } from './mutations.ts'

/** A decoder of untrusted input. */
export interface FuzzTarget {
  readonly name: string
  /** Makes one connection or request with random input; rejects when the peer misbehaves. */
  readonly attack: (random: Random, sandboxd: RunningSandboxd) => Promise<void>
}

/** Frames sent over one connection, unless it closes earlier. */
const FRAMES_PER_CONNECTION = 50

/** Time for the peer to respond after the last byte. */
const SETTLE_MS = 20

/** Close code of an internal error. */
const INTERNAL = 1011

/** Close code of a connection that was refused before its input was decoded. */
const TOO_MANY_SESSIONS = 4450

const IDENTITY = 'a'.repeat(32)

const CLIENT_MESSAGES: readonly Readonly<Record<string, unknown>>[] = [
  { type: 'ack', output: 0 },
  { type: 'resize', seq: 1, at: 0, cols: 80, rows: 24 },
  { type: 'signal', seq: 1, at: 0, signal: 'SIGWINCH' },
  { type: 'eof', seq: 1, at: 0 },
  { type: 'ping', id: 1 },
  { type: 'take' },
  { type: 'ask' },
  { type: 'give', to: 'a1' },
  { type: 'roleSeen', epoch: 1 },
  { type: 'detach' },
]

const HELLO = {
  type: 'hello',
  version: 1,
  identity: IDENTITY,
  resuming: false,
  received: 0,
  window: 65536,
  cols: 80,
  rows: 24,
  name: 'x',
  env: { TERM: 'xterm' },
}

const PLAIN_MESSAGES: readonly Readonly<Record<string, unknown>>[] = [
  { type: 'resize', cols: 80, rows: 24 },
  { type: 'signal', signal: 'SIGWINCH' },
  { type: 'eof' },
]

const SERVER_MESSAGES: readonly Readonly<Record<string, unknown>>[] = [
  { type: 'ack', input: 0, seq: 0 },
  { type: 'gap', from: 0, to: 10 },
  { type: 'snapshot', at: 0, cols: 80, rows: 24, bytes: 2, exact: true },
  { type: 'resized', at: 0, cols: 80, rows: 24 },
  { type: 'stdinClosed', at: 0 },
  { type: 'exit', code: 0, signal: null, outputEnd: 0, truncated: false },
  { type: 'error', code: 'internal', message: 'x', fatal: false },
  { type: 'role', role: 'viewer', epoch: 2, input: { at: 0, seq: 0 } },
  {
    type: 'presence',
    driver: 'a1',
    attachments: [{ id: 'a1', role: 'driver', name: '', connected: true }],
    private: null,
  },
  { type: 'asked', by: 'a2' },
  { type: 'pong', id: 1 },
]

const WELCOME = {
  type: 'welcome',
  version: 1,
  session: 's',
  attachment: 'a1',
  role: 'driver',
  authority: 'driver',
  epoch: 1,
  mode: 'pipe',
  output: 0,
  input: {
    at: 0,
    seq: 0,
  },
  inputWindow: 65536,
  keepSeconds: 60,
  cols: 80,
  rows: 24,
}

async function openSocket(sandboxd: RunningSandboxd, dialect: 'plain' | 'v1'): Promise<RawWebSocket> {
  const handshake = await openRawWebSocket({
    port: sandboxd.port,
    path: dialect === 'v1' ? '/attach?cmd=cat&keep=0' : '/attach?cmd=cat',
    headers: sandboxd.headers,
    ...(dialect === 'v1' ? { subprotocols: ['sandwire.v1'] } : {}),
  })
  if (handshake.kind === 'open') return handshake.socket
  throw new Error(`Cannot open a socket: ${JSON.stringify(handshake)}`)
}

/** Sends frames, waits for a response or a timeout, and checks that the close code is not an internal error. */
async function sendAll(socket: RawWebSocket, frames: Iterable<Uint8Array>): Promise<void> {
  const reading = (async () => {
    for await (const _ of socket.frames()) continue
  })()
  // The server may close at any point.
  await socket.sendBytes(Buffer.concat([...frames])).catch(() => {})
  await Promise.race([socket.closed, Bun.sleep(SETTLE_MS)])
  socket.reset()
  await reading
  const { frame } = await socket.closed
  if (frame?.code === TOO_MANY_SESSIONS)
    throw new Error('The server refused the session, so nothing was attacked')
  if (frame?.code === INTERNAL) throw new Error(`Server closed with 1011 "${frame.reason}"`)
}

function textFrame(payload: string): Uint8Array {
  return encodeFrame({ opcode: OPCODE.text, payload })
}

function* mutatedFrames(random: Random): Generator<Uint8Array, void> {
  for (let left = random.int(1, FRAMES_PER_CONNECTION); left > 0; left -= 1) {
    const opcode = random.pick([OPCODE.binary, OPCODE.text, OPCODE.ping, OPCODE.pong, OPCODE.continuation])
    yield mutateFrame(random, { opcode, payload: random.bytes(random.int(0, 200)) })
  }
}

/** Mostly valid messages, so that the invalid one hits an established session. */
function* mutatedTexts(
  random: Random,
  messages: readonly Readonly<Record<string, unknown>>[],
): Generator<Uint8Array, void> {
  for (let left = random.int(1, FRAMES_PER_CONNECTION); left > 0; left -= 1) {
    const message = random.pick(messages)
    if (random.chance(0.3)) yield encodeFrame({ payload: random.bytes(random.int(0, 100)) })
    else yield textFrame(random.chance(0.2) ? mutateMessage(random, message) : JSON.stringify(message))
  }
}

async function request(sandboxd: RunningSandboxd, path: string, init: RequestInit): Promise<void> {
  const response = await sandboxd.fetch(path, init)
  await response.arrayBuffer()
  if (response.status === 500) throw new Error(`Server answered ${response.status} to "${path}"`)
}

async function attackHttp(random: Random, sandboxd: RunningSandboxd): Promise<void> {
  const good = upgradeRequest({ port: sandboxd.port, path: '/attach?cmd=true', headers: sandboxd.headers })
  await using tcp = await openRawTcp(sandboxd)
  const text = random.chance(0.2)
    ? Buffer.from(random.bytes(random.int(1, 500))).toString('latin1')
    : mutateText(random, good)
  tcp.write(Buffer.from(text, 'latin1')).catch(() => {})
  const answer = await Promise.race([tcp.read(), Bun.sleep(SETTLE_MS)])
  const status = Buffer.from(answer ?? '').toString('latin1', 9, 12)
  if (status === '500') throw new Error(`Server answered 500 to ${JSON.stringify(text)}`)
}

/** Harmless commands: they exist, or are below a directory that does not. */
async function attackQuery(random: Random, sandboxd: RunningSandboxd): Promise<void> {
  const cmd = random.pick(['true', 'cat', `/nowhere/${random.word()}`])
  const rest = mutateText(random, 'mode=pipe&cols=80&rows=24&keep=0&role=driver&take=1&overflow=block&cwd=.')
  const path = `/attach?cmd=${encodeURIComponent(cmd)}&${rest.replaceAll(/[\0\r\n ]/g, '').replaceAll('cmd', 'cmx')}`
  const subprotocols = random.chance(0.5) ? { subprotocols: ['sandwire.v1'] } : {}
  const handshake = await openRawWebSocket({
    port: sandboxd.port,
    path,
    headers: sandboxd.headers,
    ...subprotocols,
  })
  if (handshake.kind === 'open') handshake.socket.reset()
  else if (handshake.kind === 'refused' && handshake.status === 500) {
    throw new Error(`Server answered ${handshake.status} to "${path}"`)
  }
}

async function attackCreateBody(random: Random, sandboxd: RunningSandboxd): Promise<void> {
  const createId = Buffer.from(random.bytes(16)).toString('hex')
  const body = {
    createId,
    cmd: 'true',
    args: ['x'],
    mode: 'pipe',
    cwd: '.',
    env: { A: 'b' },
    cols: 80,
    rows: 24,
    keep: 1,
  }
  const text = mutateMessage(random, body).replaceAll(/"cmd":"(?!true)[^"]*"/g, '"cmd":"true"')
  await request(sandboxd, '/sessions', { method: 'POST', body: text })
}

async function attackRoutes(random: Random, sandboxd: RunningSandboxd): Promise<void> {
  const id = random.pick([
    'x',
    '..',
    '%2e%2e',
    'a'.repeat(200),
    encodeURIComponent(mutateText(random, 'abc')),
  ])
  const route = random.pick([
    `/sessions/${id}`,
    `/sessions/${id}/output?from=${random.pick(['-1', '1e9', 'x', '0'])}`,
  ])
  const method = random.pick(['GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS'])
  await request(sandboxd, random.chance(0.2) ? `/${id}` : route, { method })
  const body = mutateMessage(random, { signal: 'SIGTERM' })
  await request(sandboxd, `/sessions/${id}/signal`, { method: 'POST', body })
}

/** Runs the client library against a server that sends random messages: it must fail or retry, and never throw. */
async function attackClient(random: Random): Promise<void> {
  const frames = Array.from({ length: random.int(1, FRAMES_PER_CONNECTION) }, () => {
    if (random.chance(0.3)) return random.bytes(random.int(0, 50))
    const message = random.pick(SERVER_MESSAGES)
    return random.chance(0.3) ? mutateMessage(random, message) : JSON.stringify(message)
  })
  const welcome = random.chance(0.2) ? mutateMessage(random, WELCOME) : JSON.stringify(WELCOME)
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (upgrade, self) => {
      const headers = { 'sec-websocket-protocol': 'sandwire.v1' }
      return self.upgrade(upgrade, { data: undefined, headers })
        ? undefined
        : new Response('', { status: 400 })
    },
    websocket: {
      message: (socket) => {
        for (const frame of [welcome, ...frames]) socket.send(frame)
        socket.close()
      },
    },
  })
  const handle = attach({
    url: `http://127.0.0.1:${server.port ?? 0}`,
    request: { cmd: 'cat' },
    onOutput: () => {},
    retryForMs: 1,
    connectForMs: 500,
  })
  try {
    await eventually(() => handle.status.get().kind !== 'connecting', {
      what: 'the client to fail or retry',
    })
  } finally {
    handle.detach()
    await server.stop(true)
  }
}

/** Every decoder that reads from a socket. */
export const TARGETS: readonly FuzzTarget[] = [
  { name: 'http', attack: attackHttp },
  { name: 'query', attack: attackQuery },
  { name: 'create-body', attack: attackCreateBody },
  { name: 'routes', attack: attackRoutes },
  {
    name: 'websocket-frames',
    attack: async (random, sandboxd) => sendAll(await openSocket(sandboxd, 'plain'), mutatedFrames(random)),
  },
  {
    name: 'websocket-bytes',
    attack: async (random, sandboxd) =>
      sendAll(await openSocket(sandboxd, 'plain'), [random.bytes(random.int(1, 2_000))]),
  },
  {
    name: 'plain-messages',
    attack: async (random, sandboxd) =>
      sendAll(await openSocket(sandboxd, 'plain'), mutatedTexts(random, PLAIN_MESSAGES)),
  },
  {
    name: 'hello',
    attack: async (random, sandboxd) =>
      sendAll(await openSocket(sandboxd, 'v1'), [textFrame(mutateMessage(random, HELLO))]),
  },
  {
    name: 'v1-messages',
    attack: async (random, sandboxd) =>
      sendAll(await openSocket(sandboxd, 'v1'), [
        textFrame(JSON.stringify(HELLO)),
        ...mutatedTexts(random, CLIENT_MESSAGES),
      ]),
  },
  { name: 'client', attack: (random) => attackClient(random) },
]
