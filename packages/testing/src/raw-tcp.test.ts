import { expect, test } from 'bun:test'
import { eventually } from './eventually.ts'
import { openRawTcp } from './raw-tcp.ts'
import { rejectionOf } from './rejection.ts'

/** A server that runs the first command it receives. */
function openServer() {
  const received: string[] = []
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    allowHalfOpen: true,
    socket: {
      data: (socket, bytes) => {
        received.push(bytes.toString())
        if (bytes.toString() === 'fin') socket.end('bye')
        if (bytes.toString() === 'reset') socket.terminate()
        if (bytes.toString() === 'flood') socket.write(new Uint8Array(4 << 20))
      },
      end: (socket) => void socket.end('heard the end'),
    },
  })
  return { port: listener.port, received, [Symbol.dispose]: () => listener.stop(true) }
}

test('openRawTcp reads the bytes before a FIN, then undefined', async () => {
  using server = openServer()
  await using tcp = await openRawTcp(server)
  await tcp.write('fin')
  expect(await tcp.read()).toEqual(Buffer.from('bye'))
  expect(await tcp.read()).toBeUndefined()
  expect(await tcp.ended).toBe('fin')
})

test('openRawTcp distinguishes a reset from a FIN', async () => {
  using server = openServer()
  await using tcp = await openRawTcp(server)
  await tcp.write('reset')
  expect(await tcp.ended).toBe('reset')
  expect(await tcp.read()).toBeUndefined()
  expect((await rejectionOf(tcp.write('more'))).message).toContain('connection ended')
})

test('openRawTcp receives after it has closed its sending direction', async () => {
  using server = openServer()
  await using tcp = await openRawTcp(server)
  tcp.endWriting()
  expect(Buffer.from((await tcp.read()) ?? []).toString()).toBe('heard the end')
  expect(await tcp.ended).toBe('fin')
})

test('openRawTcp reads nothing while paused', async () => {
  using server = openServer()
  await using tcp = await openRawTcp(server)
  tcp.pause()
  await tcp.write('flood')
  await eventually(() => server.received.includes('flood'), { what: 'the flood to start' })
  expect(tcp.unreadBytes).toBe(0)
  tcp.resume()
  expect((await tcp.read())?.length).toBeGreaterThan(0)
})

test('openRawTcp reports that it closed the connection itself', async () => {
  using server = openServer()
  const tcp = await openRawTcp(server)
  tcp.close()
  expect(await tcp.ended).toBe('local')
})

test('openRawTcp rejects when the connection is refused', async () => {
  const server = openServer()
  server[Symbol.dispose]()
  expect(await rejectionOf(openRawTcp(server))).toMatchObject({ code: 'ECONNREFUSED' })
})
