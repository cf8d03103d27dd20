import type { Socket } from 'bun'
import { afterEach, describe, expect, test } from 'bun:test'
import { eventually } from './eventually.ts'
import { type FaultProxy, openFaultProxy } from './fault-proxy.ts'
import { patternAt, verifyPattern } from './pattern.ts'
import { readProcessCounts } from './process-counts.ts'
import { openRawTcp, type RawTcp } from './raw-tcp.ts'
import { rejectionOf } from './rejection.ts'

/** What the target received on one connection. */
interface Seen {
  readonly socket: Socket
  bytes: number
  chunks: number
  firstBad: number | undefined
  end: 'fin' | 'reset' | undefined
}

/** A target that checks the received bytes against pattern 1 and optionally echoes them. */
function openTarget({ echo = false } = {}) {
  const seen: Seen[] = []
  const unsent = new Map<Socket, Uint8Array[]>()
  const find = (socket: Socket) => seen.find((entry) => entry.socket === socket)
  const flush = (socket: Socket) => {
    const queue = unsent.get(socket) ?? []
    for (let head = queue.shift(); head !== undefined; head = queue.shift()) {
      const written = Math.max(0, socket.write(head))
      if (written < head.length) return void queue.unshift(head.subarray(written))
    }
    socket.resume()
  }
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    allowHalfOpen: true,
    socket: {
      open: (socket) => void seen.push({ socket, bytes: 0, chunks: 0, firstBad: undefined, end: undefined }),
      data: (socket, bytes) => {
        const entry = find(socket)
        if (entry === undefined) return
        entry.firstBad ??= verifyPattern(1, entry.bytes, bytes)?.offset
        entry.bytes += bytes.length
        entry.chunks++
        if (!echo) return
        socket.pause()
        unsent.set(socket, [...(unsent.get(socket) ?? []), new Uint8Array(bytes)])
        flush(socket)
      },
      drain: flush,
      end: (socket) => {
        const entry = find(socket)
        if (entry !== undefined) entry.end = 'fin'
        if (echo) socket.shutdown()
      },
      close: (socket, error) => {
        const entry = find(socket)
        if (entry !== undefined && error !== undefined && error !== null) entry.end = 'reset'
      },
      error: () => undefined,
    },
  })
  return { port: listener.port, seen, [Symbol.dispose]: () => listener.stop(true) }
}

const opened: (Disposable | AsyncDisposable)[] = []

afterEach(async () => {
  for (const resource of opened.splice(0).toReversed()) {
    if (Symbol.dispose in resource) resource[Symbol.dispose]()
    else await resource[Symbol.asyncDispose]()
  }
})

function openPair(options: { echo?: boolean } = {}) {
  const target = openTarget(options)
  const proxy = openFaultProxy({ target })
  opened.push(target, proxy)
  return { target, proxy }
}

async function connect(proxy: FaultProxy): Promise<RawTcp> {
  const tcp = await openRawTcp({ port: proxy.port })
  opened.push(tcp)
  return tcp
}

/** Reads `length` bytes or up to the end of the connection, and checks each against pattern 1. */
async function readPattern(tcp: RawTcp, length = Number.POSITIVE_INFINITY): Promise<number> {
  let offset = 0
  while (offset < length) {
    const bytes = await tcp.read()
    if (bytes === undefined) break
    expect(verifyPattern(1, offset, bytes)).toBeUndefined()
    offset += bytes.length
  }
  return offset
}

function first(seen: readonly Seen[], what = 'the target to be reached'): Promise<Seen> {
  return eventually(() => seen[0], { what })
}

describe('FaultProxy', () => {
  test('carries 32 MiB unchanged in both directions, then the FIN', async () => {
    const { target, proxy } = openPair({ echo: true })
    const tcp = await connect(proxy)
    const length = 32 << 20
    const sending = tcp.write(patternAt(1, 0, length)).then(() => tcp.endWriting())
    expect(await readPattern(tcp)).toBe(length)
    await sending
    expect(await tcp.ended).toBe('fin')
    expect(proxy.stats).toMatchObject({
      accepted: 1,
      bytesToClient: length,
      bytesToTarget: length,
      disconnects: 0,
    })
    expect((await first(target.seen)).end).toBe('fin')
    await eventually(() => proxy.connections.length === 0, { what: 'the connection to be forgotten' })
  })

  test('applies back-pressure when an end does not read, and loses nothing', async () => {
    const { target, proxy } = openPair({ echo: true })
    const tcp = await connect(proxy)
    tcp.pause()
    const length = 24 << 20
    let isSent = false
    const sending = tcp.write(patternAt(1, 0, length)).then(() => (isSent = true))
    let previous = -1
    await eventually(
      () => {
        const now = proxy.stats.bytesToTarget + (target.seen[0]?.bytes ?? 0)
        const isStill = now > 0 && now === previous
        previous = now
        return isStill
      },
      { what: 'the stream to stall' },
    )
    expect(isSent).toBe(false)
    for (const connection of proxy.connections) expect(connection.heldBytes).toBeLessThan(128 * 1024)
    tcp.resume()
    expect(await readPattern(tcp, length)).toBe(length)
    await sending
  })

  test('takes at least the time that its rate implies', async () => {
    const { proxy } = openPair({ echo: true })
    proxy.setFaults({ toClient: { rateBytesPerSecond: 1_000_000 } })
    const tcp = await connect(proxy)
    const startMs = performance.now()
    const sending = tcp.write(patternAt(1, 0, 400_000))
    expect(await readPattern(tcp, 400_000)).toBe(400_000)
    await sending
    const elapsedMs = performance.now() - startMs
    expect(elapsedMs).toBeGreaterThan(380)
  })

  test('buffers little before a slow direction', async () => {
    const { target, proxy } = openPair()
    proxy.setFaults({ toTarget: { rateBytesPerSecond: 1_000_000 } })
    const tcp = await connect(proxy)
    const sending = tcp.write(patternAt(1, 0, 8 << 20)).catch(() => 'disconnected')
    await eventually(() => proxy.stats.bytesToTarget > 200_000, { what: '200 kB to pass' })
    for (const connection of proxy.connections) expect(connection.heldBytes).toBeLessThan(64 * 1024)
    expect(target.seen[0]?.firstBad).toBeUndefined()
    proxy.disconnectAll('reset')
    expect(await sending).toBe('disconnected')
  })

  test('delays each direction by its latency', async () => {
    const { proxy } = openPair({ echo: true })
    proxy.setFaults({ toClient: { latencyMs: 30 }, toTarget: { latencyMs: 40, jitterMs: 5 } })
    const tcp = await connect(proxy)
    const startMs = performance.now()
    await tcp.write(patternAt(1, 0, 10))
    expect(await readPattern(tcp, 10)).toBe(10)
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(69)
  })

  test('writes one byte at a time when sliced', async () => {
    const { target, proxy } = openPair()
    proxy.setFaults({ toTarget: { sliceBytes: 1 } })
    const tcp = await connect(proxy)
    await tcp.write(patternAt(1, 0, 500))
    const seen = await first(target.seen)
    await eventually(() => seen.bytes === 500, { what: 'all bytes' })
    expect(seen.firstBad).toBeUndefined()
    expect(seen.chunks).toBeGreaterThan(100)
  })

  test('holds bytes and FINs in a black hole, and delivers them when it ends', async () => {
    const { target, proxy } = openPair({ echo: true })
    const tcp = await connect(proxy)
    await first(target.seen)
    proxy.setFaults({ toTarget: { blackHole: true } })
    await tcp.write(patternAt(1, 0, 1_000))
    tcp.endWriting()
    await eventually(() => proxy.connections[0]?.heldBytes === 1_000, { what: 'the proxy to hold the bytes' })
    expect(target.seen[0]).toMatchObject({ bytes: 0, end: undefined })
    proxy.setFaults({ toTarget: {} })
    expect(await readPattern(tcp)).toBe(1_000)
    expect(await tcp.ended).toBe('fin')
  })

  test('disconnects with a reset that both ends see', async () => {
    const { target, proxy } = openPair()
    const tcp = await connect(proxy)
    const seen = await first(target.seen)
    expect(proxy.disconnectAll('reset')).toBe(1)
    expect(await tcp.ended).toBe('reset')
    await eventually(() => seen.end === 'reset', { what: 'the target to see the reset' })
    expect(proxy.connections).toHaveLength(0)
  })

  test('disconnects with a FIN that both ends see, even in the middle of a stream', async () => {
    const { target, proxy } = openPair()
    const tcp = await connect(proxy)
    const seen = await first(target.seen)
    const sending = tcp.write(patternAt(1, 0, 8 << 20)).catch(() => undefined)
    await eventually(() => seen.bytes > 100_000, { what: 'the stream to run' })
    proxy.disconnectAll('fin')
    expect(await tcp.ended).toBe('fin')
    await eventually(() => seen.end === 'fin', { what: 'the target to see the end' })
    tcp.close()
    seen.socket.end()
    await sending
    await eventually(() => proxy.connections.length === 0, { what: 'the connection to be forgotten' })
  })

  test('half-closes one direction while the other stays open', async () => {
    const { target, proxy } = openPair()
    const tcp = await connect(proxy)
    const seen = await first(target.seen)
    proxy.disconnectAll('half', 'toClient')
    expect(await tcp.ended).toBe('fin')
    await tcp.write(patternAt(1, 0, 5_000))
    await eventually(() => seen.bytes === 5_000, { what: 'bytes after the half close' })
    expect(seen).toMatchObject({ end: undefined, firstBad: undefined })
  })

  test('forwards a half close of the client, and the response that follows', async () => {
    const { target, proxy } = openPair()
    const tcp = await connect(proxy)
    tcp.endWriting()
    const seen = await first(target.seen)
    await eventually(() => seen.end === 'fin', { what: 'the target to see the end' })
    seen.socket.write(patternAt(1, 0, 777))
    expect(await readPattern(tcp, 777)).toBe(777)
  })

  test('forwards a reset in both directions', async () => {
    const { target, proxy } = openPair()
    const [left, right] = [await connect(proxy), await connect(proxy)]
    await eventually(() => target.seen.length === 2, { what: 'both connections' })
    left.reset()
    await eventually(() => target.seen.some((entry) => entry.end === 'reset'), {
      what: 'the target to see the reset',
    })
    for (const entry of target.seen) if (entry.end === undefined) entry.socket.terminate()
    expect(await right.ended).toBe('reset')
  })

  test('disconnects once after an exact number of bytes', async () => {
    const { target, proxy } = openPair()
    proxy.disconnectAfterBytes('toTarget', 12_345, 'fin')
    const tcp = await connect(proxy)
    await tcp.write(patternAt(1, 0, 30_000)).catch(() => undefined)
    const seen = await first(target.seen)
    await eventually(() => seen.end === 'fin', { what: 'the disconnect' })
    expect(seen).toMatchObject({ bytes: 12_345, firstBad: undefined })
    expect(proxy.stats.disconnects).toBe(1)
    const next = await connect(proxy)
    await next.write(patternAt(1, 0, 30_000))
    await eventually(() => target.seen[1]?.bytes === 30_000, { what: 'the next connection to pass' })
  })

  test('refuses new connections, keeps the old ones and listens again on the same port', async () => {
    const { target, proxy } = openPair({ echo: true })
    const old = await connect(proxy)
    await first(target.seen)
    proxy.setFaults({ newConnections: 'refuse' })
    expect(await rejectionOf(connect(proxy))).toMatchObject({ code: 'ECONNREFUSED' })
    await old.write(patternAt(1, 0, 10))
    expect(await readPattern(old, 10)).toBe(10)
    proxy.setFaults({ newConnections: 'accept' })
    const tcp = await connect(proxy)
    await tcp.write(patternAt(1, 0, 10))
    expect(await readPattern(tcp, 10)).toBe(10)
  })

  test('holds new connections without dialing the target until released', async () => {
    const { target, proxy } = openPair({ echo: true })
    proxy.setFaults({ newConnections: 'hold' })
    const tcp = await connect(proxy)
    await tcp.write(patternAt(1, 0, 10))
    await eventually(() => proxy.connections.length === 1, { what: 'the connection to be held' })
    expect(target.seen).toHaveLength(0)
    proxy.setFaults({ newConnections: 'accept' })
    expect(await readPattern(tcp, 10)).toBe(10)
  })

  test('resets the client when the target refuses the connection', async () => {
    const { target, proxy } = openPair()
    target[Symbol.dispose]()
    expect(await (await connect(proxy)).ended).toBe('reset')
    expect(proxy.stats.targetRefused).toBe(1)
  })

  test('leaks no file descriptor, however connections end', async () => {
    const { proxy } = openPair({ echo: true })
    const before = readProcessCounts(process.pid).fds
    for (const kind of ['reset', 'fin', 'half'] as const) {
      for (let round = 0; round < 5; round++) {
        const tcp = await connect(proxy)
        await tcp.write(patternAt(1, 0, 10))
        expect(await readPattern(tcp, 10)).toBe(10)
        proxy.disconnectAll(kind)
        await tcp.ended
        tcp.close()
        await eventually(() => proxy.connections.length === 0, { what: 'the connection to be forgotten' })
      }
    }
    await eventually(() => readProcessCounts(process.pid).fds <= before, { what: 'descriptors to be closed' })
  })
})
