import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  connectPlain,
  encodeFrame,
  eventually,
  type FrameSpec,
  OPCODE,
  openRawWebSocketOrThrow,
  type RawWebSocket,
  readProcessMemory,
} from '@sandwire/testing'
import {
  type UnaffectedPlainSession,
  openUnaffectedPlainSession,
} from './support/unaffected-plain-session.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

/** How far the server's resident memory may grow during a flood, uncollected garbage included. */
const MAX_GROWTH_BYTES = 64 * 1024 * 1024

/** Frames sent in one write. */
const BATCH_FRAMES = 10_000

const { continuation, ping, pong, text } = OPCODE

interface FloodCase {
  readonly title: string
  readonly first?: FrameSpec
  /** Sent repeatedly. */
  readonly frame: FrameSpec
  readonly frames: number
  /** Does not read the server's responses. */
  readonly isNotReading?: boolean
  /** Expected close code; absent when the connection stays open. */
  readonly closes?: number
}

const CASES: readonly FloodCase[] = [
  {
    title: 'a million continuations of 0 bytes',
    first: { fin: false },
    frame: { opcode: continuation, fin: false },
    frames: 1_000_000,
  },
  {
    title: 'continuations of 1 byte past the message limit',
    first: { fin: false, payload: 'x' },
    frame: { opcode: continuation, fin: false, payload: 'x' },
    frames: 1_100_000,
    closes: 1009,
  },
  { title: 'a million pings whose pongs are read', frame: { opcode: ping, payload: 'p' }, frames: 1_000_000 },
  {
    title: 'a million pings whose pongs are not read',
    frame: { opcode: ping, payload: 'p'.repeat(125) },
    frames: 1_000_000,
    isNotReading: true,
  },
  { title: 'a million pongs', frame: { opcode: pong, payload: 'p' }, frames: 1_000_000 },
  { title: 'empty messages past the rate limit', frame: {}, frames: 200_000, closes: 4452 },
  { title: 'messages of 1 byte past the rate limit', frame: { payload: 'x' }, frames: 200_000, closes: 4452 },
  {
    title: 'control messages past the rate limit',
    frame: { opcode: text, payload: '{"type":"resize","cols":80,"rows":24}' },
    frames: 200_000,
    closes: 4452,
  },
]

describe('floods on /attach', () => {
  let sandboxd: RunningSandboxd
  let unaffected: UnaffectedPlainSession

  beforeAll(async () => {
    sandboxd = await startSandboxd()
    unaffected = await openUnaffectedPlainSession(sandboxd)
    await unaffected.check()
  })

  afterAll(async () => {
    await unaffected[Symbol.asyncDispose]()
    expect(await sandboxd.stop()).toEqual({ code: 0, signal: null })
  })

  const residentBytes = (): number => readProcessMemory(sandboxd.pid).rssBytes

  async function open(): Promise<RawWebSocket> {
    const path = '/attach?cmd=sleep&arg=1000'
    return openRawWebSocketOrThrow({ port: sandboxd.port, path, headers: sandboxd.headers })
  }

  test.each(CASES.map((each) => [each.title, each] as const))('survives %s', async (_, each) => {
    await using socket = await open()
    const before = residentBytes()
    let most = 0
    if (each.isNotReading === true) socket.pause()
    const responses = new ResponseReader(socket)
    if (each.first !== undefined) await socket.sendFrame(each.first)
    const batch = Buffer.concat(Array.from({ length: BATCH_FRAMES }, () => encodeFrame(each.frame)))
    for (let sent = 0; sent < each.frames; sent += BATCH_FRAMES) {
      const isOver = await socket.sendBytes(batch).then(
        () => false,
        () => true,
      )
      if (isOver) break
      most = Math.max(most, residentBytes())
    }
    await unaffected.check()
    expect(most - before).toBeLessThan(MAX_GROWTH_BYTES)
    if (each.closes === undefined) {
      socket.resume()
      await responses.check()
    } else {
      expect((await socket.closed).frame?.code).toBe(each.closes)
    }
  })

  test('applies backpressure while the process does not read and loses no input', async () => {
    const script = 'sleep 1; wc -c'
    const query = new URLSearchParams([
      ['cmd', 'sh'],
      ['arg', '-c'],
      ['arg', script],
    ])
    await using client = await connectPlain(sandboxd.socketUrl(`/attach?${query}`), {
      headers: sandboxd.headers,
    })
    const before = residentBytes()
    let most = 0
    const chunk = new Uint8Array(500_000)
    for (let sent = 0; sent < 200; sent += 1) {
      await client.sendInput(chunk)
      most = Math.max(most, residentBytes())
    }
    await unaffected.check()
    await client.sendEof()
    expect(await client.closed).toMatchObject({ code: 1000 })
    expect(client.stdout.text).toBe('100000000\n')
    expect(most - before).toBeLessThan(MAX_GROWTH_BYTES)
  })

  test('detects the disconnect of a client under backpressure', async () => {
    const client = await connectPlain(sandboxd.socketUrl('/attach?cmd=sleep&arg=1000'), {
      headers: sandboxd.headers,
    })
    for (let sent = 0; sent < 20; sent += 1) client.sendInput(new Uint8Array(500_000)).catch(() => {})
    await eventually(async () => (await countSessions()) === 2, { what: 'the session to run' })
    await Bun.sleep(200)
    client.terminate()
    await eventually(async () => (await countSessions()) === 1, {
      what: 'the session to end',
    })
  })

  test('bounds the memory of messages that are never finished', async () => {
    const before = residentBytes()
    const sockets = await Promise.all(Array.from({ length: 20 }, open))
    const part = encodeFrame({ fin: false, payload: new Uint8Array(1_000_000) })
    await Promise.all(sockets.map((socket) => socket.sendBytes(part)))
    await unaffected.check()
    expect(residentBytes() - before).toBeLessThan(MAX_GROWTH_BYTES + 20 * 1_000_000)
    for (const socket of sockets) socket.reset()
    await eventually(async () => (await countSessions()) === 1, { what: 'the sessions to end' })
  })

  async function countSessions(): Promise<number> {
    const { sessions }: { sessions: unknown[] } = await (await sandboxd.fetch('/sessions')).json()
    return sessions.length
  }
})

/** Reads the server's responses so that it is never blocked, and checks that it still responds. */
class ResponseReader {
  readonly #socket: RawWebSocket
  readonly #pongs = new Set<string>()

  constructor(socket: RawWebSocket) {
    this.#socket = socket
    void this.#read()
  }

  /** Pings until a pong arrives: under load a server may leave some pings unanswered. */
  async check(): Promise<void> {
    await eventually(
      async () => {
        await this.#socket.sendFrame({ opcode: ping, payload: 'after the flood' })
        return this.#pongs.has('after the flood')
      },
      { what: 'a pong after the flood' },
    )
  }

  async #read(): Promise<void> {
    for await (const frame of this.#socket.frames()) {
      if (frame.opcode === pong) this.#pongs.add(Buffer.from(frame.payload).toString())
    }
  }
}
