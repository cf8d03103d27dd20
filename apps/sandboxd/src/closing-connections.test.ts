import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { expect, test } from 'bun:test'
import { awaitClosingConnections } from './closing-connections.ts'

test('waits until the peer has closed a connection that was closed here', async () => {
  using server = await listen()
  const client = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true })
  const accepted = await server.accepted
  accepted.end('last words')
  let isClosed = false
  const waited = awaitClosingConnections(server.port).then(() => isClosed)
  client.resume()
  await once(client, 'end')
  isClosed = true
  client.end()
  expect(await waited).toBe(true)
})

async function listen(): Promise<Disposable & { readonly port: number; readonly accepted: Promise<Socket> }> {
  const { promise: accepted, resolve } = Promise.withResolvers<Socket>()
  const server = createServer({ allowHalfOpen: true }, resolve).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not a TCP server')
  return { port: address.port, accepted, [Symbol.dispose]: () => void server.close() }
}
