import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import {
  encodeClosePayload,
  encodeFrame,
  eventually,
  type FrameSpec,
  OPCODE,
  openRawTcp,
  openRawWebSocketOrThrow,
  type RawTcp,
  type RawWebSocket,
  readProcessCounts,
  readProcessMemory,
  upgradeRequest,
} from '@sandwire/testing'
import { readShell } from './support/attached.ts'
import { Deployment } from './support/deployment.ts'
import { UnaffectedSession } from './support/unaffected-session.ts'

const { continuation, text, close, ping } = OPCODE
const MEBIBYTE = 1024 ** 2
/** How far a program's resident memory may grow during a flood, uncollected garbage included. */
const MAX_GROWTH_BYTES = 96 * MEBIBYTE
/** Frames per write. */
const BATCH_FRAMES = 10_000

let deployment: Deployment
let unaffected: UnaffectedSession
let workerd = 0
beforeAll(async () => {
  deployment = await Deployment.open()
  await Promise.all([deployment.create('attacked'), deployment.create('unaffected')])
  unaffected = await UnaffectedSession.open(deployment.sandbox('unaffected'))
  workerd = deployment.workerd ?? 0
})
afterAll(async () => {
  await unaffected[Symbol.asyncDispose]()
  await deployment[Symbol.asyncDispose]()
})

/** Checks that other sessions are unaffected, every program still runs, and new clients are served. */
afterEach(async () => {
  await unaffected.check()
  expect(unaffected.reconnections).toBe(0)
  expect(deployment.workerd).toBe(workerd)
  expect(await readShell(deployment.sandbox('attacked'), 'echo served')).toBe('served\n')
})

function open(extensions?: string): Promise<RawWebSocket> {
  const { port, headers } = deployment.host
  const path = '/attach?sandbox=attacked&cmd=sleep&arg=1000'
  return openRawWebSocketOrThrow({ port, path, headers, ...(extensions !== undefined && { extensions }) })
}

/** Resident bytes of every program between the socket and the process. */
function residentBytes(): number[] {
  const { id } = attacked()
  return [workerd, deployment.host.pid, deployment.supervisor(id), deployment.sandboxd(id)].map(
    (pid) => readProcessMemory(pid).rssBytes,
  )
}

function attacked(): { readonly id: string } {
  const [id] = deployment.ids
  if (id === undefined) throw new Error('There is no sandbox')
  return { id }
}

describe('compression (threat T29)', () => {
  test.each([
    'permessage-deflate',
    'permessage-deflate; client_max_window_bits; server_no_context_takeover',
    'x-webkit-deflate-frame, permessage-deflate; server_max_window_bits=15',
  ])('is not negotiated: %s', async (extensions) => {
    await using socket = await open(extensions)
    expect(socket.response.headers.get('sec-websocket-extensions')).toBeNull()
    // A compressed frame although none was negotiated: 64 bytes that would inflate to 64 KiB.
    const bomb = Bun.deflateSync(new Uint8Array(65_536))
    await socket.sendFrame({ rsv1: true, payload: bomb })
    expect((await socket.closed).frame?.code).toBe(1002)
  })
})

describe('an invalid frame (threat T30)', () => {
  const wrong: readonly [string, number, readonly FrameSpec[]][] = [
    ['with RSV2', 1002, [{ rsv2: true, payload: 'x' }]],
    ['with RSV3', 1002, [{ rsv3: true, payload: 'x' }]],
    ['without a mask', 1002, [{ mask: false, payload: 'x' }]],
    ['of opcode 3', 1002, [{ opcode: 3, payload: 'x' }]],
    ['of opcode 11', 1002, [{ opcode: 11, payload: 'x' }]],
    ['of 126 bytes that pings', 1002, [{ opcode: ping, payload: 'x'.repeat(126) }]],
    ['of a ping in parts', 1002, [{ opcode: ping, fin: false }]],
    ['that continues nothing', 1002, [{ opcode: continuation, payload: 'x' }]],
    ['within another message', 1002, [{ fin: false, payload: 'x' }, { payload: 'y' }]],
    ['that claims 2^63 bytes', 1009, [{ declaredLength: 1n << 63n }]],
    ['of 2 MiB', 1009, [{ payload: new Uint8Array(2 * MEBIBYTE) }]],
    ['whose text is not UTF-8', 1007, [{ opcode: text, payload: new Uint8Array([0xc3, 0x28]) }]],
    ['that closes with 1005', 1002, [{ opcode: close, payload: encodeClosePayload(1005) }]],
    ['that closes with 999', 1002, [{ opcode: close, payload: encodeClosePayload(999) }]],
    ['after a close', 1000, [{ opcode: close, payload: encodeClosePayload(1000) }, { payload: 'x' }]],
  ]
  test.each(wrong)('%s closes its own connection with %d', async (_, code, frames) => {
    await using socket = await open()
    // The peer may close before it has read everything.
    socket.sendBytes(Buffer.concat(frames.map(encodeFrame))).catch(() => undefined)
    expect((await socket.closed).frame?.code).toBe(code)
  })
})

describe('a flood (threat T30)', () => {
  const floods: readonly [string, FrameSpec | undefined, FrameSpec, number][] = [
    ['endless continuations of 0 bytes', { fin: false }, { opcode: continuation, fin: false }, 500_000],
    [
      'continuations of 1 byte past the message limit',
      { fin: false, payload: 'x' },
      { opcode: continuation, fin: false, payload: 'x' },
      1_100_000,
    ],
    ['pings', undefined, { opcode: ping, payload: 'p' }, 300_000],
    ['messages of 1 byte past the rate limit', undefined, { payload: 'x' }, 200_000],
  ]
  test.each(floods)(
    'of %s takes bounded memory and leaves other sessions unaffected',
    async (_, first, frame, frames) => {
      await using socket = await open()
      const before = residentBytes()
      let most = before
      void drain(socket)
      if (first !== undefined) await socket.sendFrame(first)
      const batch = Buffer.concat(Array.from({ length: BATCH_FRAMES }, () => encodeFrame(frame)))
      let isOver = false
      void socket.closed.then(() => (isOver = true))
      for (let sent = 0; sent < frames && !isOver; sent += BATCH_FRAMES) {
        await socket.sendBytes(batch).catch(() => (isOver = true))
        most = residentBytes().map((bytes, index) => Math.max(bytes, most[index] ?? 0))
      }
      await unaffected.check()
      for (const [index, bytes] of most.entries())
        expect(bytes - (before[index] ?? 0)).toBeLessThan(MAX_GROWTH_BYTES)
    },
  )
})

describe('a handshake that exhausts resources (threat T31)', () => {
  const request = (): string =>
    upgradeRequest({
      port: deployment.host.port,
      path: '/attach?sandbox=attacked&cmd=cat',
      headers: deployment.host.headers,
    })

  test.each([
    ['10,000 headers', (good: string) => withHeaders(good, `X-Filler: ${'filler'.repeat(10)}`)],
    [
      'a header of 1 MiB',
      (good: string) => good.replace('\r\n\r\n', `\r\nX-A: ${'b'.repeat(MEBIBYTE)}\r\n\r\n`),
    ],
    ['a path of 1 MiB', (good: string) => good.replace('cmd=cat', `cmd=${'c'.repeat(MEBIBYTE)}`)],
    ['no line end at all', () => 'A'.repeat(2 * MEBIBYTE)],
  ])('with %s is refused', async (_, change) => {
    await using tcp = await openRawTcp(deployment.host)
    tcp.write(change(request())).catch(() => undefined)
    const answer = new TextDecoder().decode((await tcp.read()) ?? new Uint8Array())
    // workerd responds itself, without details of ours, or closes the connection.
    expect(answer).not.toMatch(/^HTTP\/1\.1 (101|5)/)
  })

  test("with 10,000 headers within workerd's limit has no effect", async () => {
    await using tcp = await openRawTcp(deployment.host)
    await tcp.write(withHeaders(request(), 'X-A: b'))
    expect(new TextDecoder().decode(await tcp.read())).toMatch(/^HTTP\/1\.1 101 /)
  })

  test('at one byte a second, from many clients, does not block others', async () => {
    const slow = await openMany(200)
    for (let at = 0; at < 3; at += 1) {
      for (const tcp of slow) tcp.write(request().charAt(at)).catch(() => undefined)
      await unaffected.check()
      expect(await readShell(deployment.sandbox('attacked'), 'echo served')).toBe('served\n')
      await Bun.sleep(1_000)
    }
    for (const tcp of slow) tcp.reset()
  })

  test('with 5,000 silent connections does not block others, and their descriptors are closed', async () => {
    const before = readProcessCounts(workerd).fds
    const silent = await openMany(5_000)
    await unaffected.check()
    expect(await readShell(deployment.sandbox('attacked'), 'echo served')).toBe('served\n')
    for (const tcp of silent) tcp.reset()
    await eventually(() => readProcessCounts(workerd).fds < before + 50, {
      what: 'their descriptors',
    })
  })
})

function withHeaders(request: string, header: string): string {
  return request.replace('\r\n\r\n', `\r\n${`${header}\r\n`.repeat(10_000)}\r\n`)
}

/** Opens silent connections in batches. */
async function openMany(count: number): Promise<RawTcp[]> {
  const opened: RawTcp[] = []
  while (opened.length < count) {
    const batch = Array.from({ length: Math.min(250, count - opened.length) }, () =>
      openRawTcp(deployment.host),
    )
    opened.push(...(await Promise.all(batch)))
  }
  return opened
}

/** Reads everything, so that the peer is never blocked. */
async function drain(socket: RawWebSocket): Promise<void> {
  for await (const _ of socket.frames()) continue
}
