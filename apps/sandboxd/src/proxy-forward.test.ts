import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from './log.ts'
import { openForward } from './proxy-forward.ts'

const cleanUps: (() => void)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

const lines: string[] = []
const log = createLog(
  (line) => lines.push(line),
  () => new Date(0),
)

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
  const forward = await openForward({ hostname: '127.0.0.1', port: 0, socketPath }, log)
  if (forward === undefined) throw new Error('no forward')
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

test('openForward closes a connection when the proxy is missing or closes its own', async () => {
  const missing = await openForward(
    { hostname: '127.0.0.1', port: 0, socketPath: '/nonexistent/proxy.sock' },
    log,
  )
  if (missing === undefined) throw new Error('no forward')
  cleanUps.push(() => missing.close())
  for (const port of [portOf(missing), await open((socket) => socket.destroy())]) {
    const client = dial(port)
    client.on('error', () => {})
    await new Promise<void>((resolve) => {
      client.on('end', resolve)
      client.on('close', resolve)
      client.resume()
    })
  }
})

test('openForward logs that the port is in use, and does not fail', async () => {
  const holder = createServer()
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
  cleanUps.push(() => holder.close())
  lines.length = 0
  const route = { hostname: '127.0.0.1', port: portOf(holder), socketPath: '/nonexistent' }
  expect(await openForward(route, log)).toBeUndefined()
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ event: 'proxy_unavailable', code: 'EADDRINUSE' })
})
