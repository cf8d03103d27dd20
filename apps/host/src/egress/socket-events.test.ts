import { expect, test } from 'bun:test'
import { SocketEvents, type SocketListener } from './socket-events.ts'

function record(told: string[]): SocketListener {
  return {
    data: (bytes) => told.push(bytes.toString()),
    drained: () => told.push('drained'),
    ended: () => told.push('ended'),
    closed: () => told.push('closed'),
    broke: () => told.push('broke'),
  }
}

test('delivers events from before the first listener in order, from copied buffers', async () => {
  const events = new SocketEvents()
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } }).port,
    socket: { data: () => undefined },
  })
  const bytes = Buffer.from('early')
  await events.handlers.data?.(socket, bytes)
  bytes.fill(0)
  await events.handlers.end?.(socket)
  const told: string[] = []
  events.listen(record(told))
  await events.handlers.data?.(socket, Buffer.from('late'))
  await events.handlers.close?.(socket)
  socket.terminate()
  expect(told).toEqual(['early', 'ended', 'late', 'closed'])
})
