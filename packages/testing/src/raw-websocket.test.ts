import { describe, expect, test } from 'bun:test'
import { openRawTcp } from './raw-tcp.ts'
import { openRawWebSocket, openRawWebSocketOrThrow, upgradeRequest } from './raw-websocket.ts'
import { patternAt } from './pattern.ts'
import { decodeClosePayload, encodeClosePayload, encodeFrame, OPCODE } from './websocket-frame.ts'
import { rejectionOf } from './rejection.ts'

/** Echoes; the paths `/refuse` and `/flood` do what they say. */
function openEchoServer() {
  const server = Bun.serve<{ readonly path: string }>({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request, server) {
      const path = new URL(request.url).pathname
      if (path === '/refuse') return new Response('not you', { status: 403, headers: { 'x-why': 'because' } })
      const headers = { 'x-cookie': request.headers.get('cookie') ?? '' }
      return server.upgrade(request, { data: { path }, headers })
        ? undefined
        : new Response('no upgrade', { status: 400 })
    },
    websocket: {
      open: (socket) => {
        if (socket.data.path === '/flood') socket.send(new Uint8Array(1 << 20))
      },
      message: (socket, message) => {
        if (message === 'close') socket.close(4001, 'as asked')
        else socket.send(message)
      },
    },
  })
  return { port: server.port ?? 0, [Symbol.asyncDispose]: () => server.stop(true) }
}

describe('openRawWebSocket', () => {
  test('echoes text and binary frames of every length form', async () => {
    await using server = openEchoServer()
    await using socket = await openRawWebSocketOrThrow({ port: server.port, headers: { cookie: 'a=b' } })
    expect(socket.response.headers.get('x-cookie')).toBe('a=b')
    for (const length of [0, 5, 126, 70_000]) {
      const payload = patternAt(1, 0, length)
      await socket.sendFrame({ payload })
      expect(await socket.nextFrame()).toMatchObject({
        opcode: OPCODE.binary,
        fin: true,
        isMasked: false,
        payload,
      })
    }
    await socket.sendFrame({ opcode: OPCODE.text, payload: 'héllo' })
    expect(await socket.nextFrame()).toMatchObject({
      opcode: OPCODE.text,
      payload: new TextEncoder().encode('héllo'),
    })
  })

  test('sends fragments, pings between them, and bytes split at any position', async () => {
    await using server = openEchoServer()
    await using socket = await openRawWebSocketOrThrow(server)
    const bytes = Buffer.concat([
      encodeFrame({ fin: false, payload: 'ab' }),
      encodeFrame({ opcode: OPCODE.ping, payload: 'p' }),
      encodeFrame({ opcode: OPCODE.continuation, payload: 'cd' }),
    ])
    for (const byte of bytes) await socket.sendBytes(new Uint8Array([byte]))
    expect(await socket.nextFrame()).toMatchObject({
      opcode: OPCODE.pong,
      payload: new TextEncoder().encode('p'),
    })
    expect(await socket.nextFrame()).toMatchObject({
      opcode: OPCODE.binary,
      payload: new TextEncoder().encode('abcd'),
    })
  })

  test('returns status, headers and body of a refusal', async () => {
    await using server = openEchoServer()
    const handshake = await openRawWebSocket({ port: server.port, path: '/refuse' })
    if (handshake.kind !== 'refused') throw new Error(`Handshake was "${handshake.kind}"`)
    expect(handshake).toMatchObject({ status: 403, body: 'not you' })
    expect(handshake.headers.get('x-why')).toBe('because')
    expect(
      (await rejectionOf(openRawWebSocketOrThrow({ port: server.port, path: '/refuse' }))).message,
    ).toContain('answered 403 "not you"')
  })

  test("receives the server's close frame, then the FIN", async () => {
    await using server = openEchoServer()
    await using socket = await openRawWebSocketOrThrow(server)
    await socket.sendFrame({ opcode: OPCODE.text, payload: 'close' })
    const frame = await socket.nextFrame()
    expect(decodeClosePayload(frame.payload)).toEqual({ code: 4001, reason: 'as asked' })
    await socket.sendFrame({ opcode: OPCODE.close, payload: encodeClosePayload(4001) })
    expect(await socket.closed).toEqual({ how: 'fin', frame: { code: 4001, reason: 'as asked' } })
    expect((await rejectionOf(socket.nextFrame())).message).toContain('connection ended')
  })

  test('reports the end of the connection after an invalid frame', async () => {
    await using server = openEchoServer()
    for (const spec of [
      { rsv1: true },
      { opcode: 0xb },
      { opcode: OPCODE.ping, payload: new Uint8Array(126) },
    ]) {
      await using socket = await openRawWebSocketOrThrow(server)
      await socket.sendFrame(spec)
      expect(['fin', 'reset']).toContain((await socket.closed).how)
    }
  })

  test('returns all frames up to the end', async () => {
    await using server = openEchoServer()
    await using socket = await openRawWebSocketOrThrow(server)
    await socket.sendFrame({ payload: '1' })
    await socket.sendFrame({ payload: '2' })
    await socket.sendFrame({ opcode: OPCODE.text, payload: 'close' })
    await socket.sendFrame({ opcode: OPCODE.close, payload: encodeClosePayload(1000) })
    const opcodes = []
    for await (const frame of socket.frames()) opcodes.push(frame.opcode)
    expect(opcodes).toEqual([OPCODE.binary, OPCODE.binary, OPCODE.close])
  })

  test('rejects when no frame arrives in time, and loses no later frame', async () => {
    await using server = openEchoServer()
    await using socket = await openRawWebSocketOrThrow(server)
    expect((await rejectionOf(socket.nextFrame(10))).message).toContain(
      'Timed out after 10 ms waiting for a frame',
    )
    await socket.sendFrame({ payload: 'late' })
    expect(await socket.nextFrame()).toMatchObject({ payload: new TextEncoder().encode('late') })
  })

  test('does not negotiate an extension the server lacks', async () => {
    await using server = openEchoServer()
    await using socket = await openRawWebSocketOrThrow({
      port: server.port,
      extensions: 'permessage-deflate',
    })
    expect(socket.response.headers.get('sec-websocket-extensions')).toBeNull()
  })

  test('reads frames that arrive with the response', async () => {
    await using server = openEchoServer()
    await using socket = await openRawWebSocketOrThrow({ port: server.port, path: '/flood' })
    expect((await socket.nextFrame()).payload).toHaveLength(1 << 20)
  })
})

test('upgradeRequest returns a request that can be sent in parts', async () => {
  await using server = openEchoServer()
  await using tcp = await openRawTcp(server)
  for (const letter of upgradeRequest({ port: server.port, subprotocols: ['a', 'b'] }))
    await tcp.write(letter)
  expect(Buffer.from((await tcp.read()) ?? []).toString()).toStartWith('HTTP/1.1 101')
})
