import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openForward } from './socket-forward.ts'

const cleanUps: (() => void)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

const LISTEN = { host: '127.0.0.1', port: 0 }

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** A forward to a unix socket that this handler serves. */
async function open(handler: (socket: Socket) => void): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-proxy-'))
  const socketPath = join(folder, 'proxy.sock')
  const upstream = createServer({ allowHalfOpen: true }, handler)
  await new Promise<void>((resolve) => upstream.listen(socketPath, resolve))
  const forward = await openForward({ listen: LISTEN, target: () => socketPath, maxConnections: 8 })
  cleanUps.push(() => {
    forward.close()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return portOf(forward)
}

function dial(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  cleanUps.push(() => socket.destroy())
  return socket
}

/** All bytes up to the end of the other direction; `for await` would close this direction too. */
function readAll(socket: Socket): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('end', () => resolve(Buffer.concat(chunks)))
  socket.on('error', reject)
  return promise
}

test('openForward forwards bytes both ways and half-closes each direction separately', async () => {
  const port = await open((socket) => {
    // Answers only after the request has ended, which needs half-close.
    void readAll(socket).then((request) => socket.end(`${request.byteLength} bytes`))
  })
  const client = dial(port)
  client.end(Buffer.alloc(5_000_000, 1))
  expect((await readAll(client)).toString()).toBe('5000000 bytes')
})

test('openForward closes a connection when the target is missing or closes its own', async () => {
  const targets = ['/nonexistent/proxy.sock', undefined]
  const missing = await Promise.all(
    targets.map((path) => openForward({ listen: LISTEN, target: () => path, maxConnections: 8 })),
  )
  cleanUps.push(() => missing.forEach((each) => each.close()))
  for (const port of [...missing.map(portOf), await open((socket) => socket.destroy())]) {
    const client = dial(port)
    client.on('error', () => {})
    await new Promise<void>((resolve) => {
      client.on('end', resolve)
      client.on('close', resolve)
      client.resume()
    })
  }
})

test('openForward waits for a target that is being started', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-proxy-'))
  const socketPath = join(folder, 'proxy.sock')
  const forward = await openForward({
    listen: LISTEN,
    target: () => socketPath,
    maxConnections: 8,
    waitMs: 20_000,
  })
  const client = dial(portOf(forward))
  client.write('early')
  await new Promise<void>((resolve) => client.once('connect', resolve))
  const upstream = createServer({ allowHalfOpen: true }, (socket) => {
    void readAll(socket).then((request) => socket.end(`${request.toString()}!`))
  })
  cleanUps.push(() => {
    forward.close()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  })
  await new Promise<void>((resolve) => upstream.listen(socketPath, resolve))
  client.end(' and late')
  expect((await readAll(client)).toString()).toBe('early and late!')
})

test('openForward lets connections wait for their turn', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-proxy-'))
  const socketPath = join(folder, 'proxy.sock')
  let arrived = 0
  const upstream = createServer((socket) => {
    arrived += 1
    socket.pipe(socket)
  })
  await new Promise<void>((resolve) => upstream.listen(socketPath, resolve))
  let turns = 2
  const mayForward = (): boolean => turns-- > 0
  const forward = await openForward({
    listen: LISTEN,
    target: () => socketPath,
    maxConnections: 8,
    mayForward,
  })
  cleanUps.push(() => {
    forward.close()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const clients = [dial(portOf(forward)), dial(portOf(forward))]
  const echo = async (client: Socket): Promise<void> => {
    client.write('x')
    await new Promise<void>((resolve) => client.once('data', () => resolve()))
  }
  await Promise.all(clients.map(echo))
  const waiting = dial(portOf(forward))
  const echoed = echo(waiting)
  await Promise.all(clients.map(echo))
  expect(arrived).toBe(2)
  turns = 1
  await echoed
  expect(arrived).toBe(3)
})

test('openForward rejects when the port is in use', async () => {
  const holder = createServer()
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
  cleanUps.push(() => holder.close())
  const listen = { host: '127.0.0.1', port: portOf(holder) }
  const opened = openForward({ listen, target: () => undefined, maxConnections: 8 })
  expect(await opened.catch((error: { code?: string }) => error.code)).toBe('EADDRINUSE')
})
