import { expect, test } from 'bun:test'
import { SocketEvents, type SocketListener } from './socket-events.ts'

function record(events: string[]): SocketListener {
  return {
    data: (bytes) => events.push(bytes.toString()),
    drained: () => events.push('drained'),
    ended: () => events.push('ended'),
    closed: () => events.push('closed'),
    broke: () => events.push('broke'),
  }
}

test('delivers events from before the first listener in order, from copied buffers', async () => {
  const source = new SocketEvents()
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } }).port,
    socket: { data: () => undefined },
  })
  const bytes = Buffer.from('early')
  await source.handlers.data?.(socket, bytes)
  bytes.fill(0)
  await source.handlers.end?.(socket)
  const events: string[] = []
  source.listen(record(events))
  await source.handlers.data?.(socket, Buffer.from('late'))
  await source.handlers.close?.(socket)
  socket.terminate()
  expect(events).toEqual(['early', 'ended', 'late', 'closed'])
})
