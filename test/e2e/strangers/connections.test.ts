import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually, readProcessTable } from '@sandwire/testing'
import { type RunningHost, startHost } from '../support/control.ts'

/** Connections that the server allows here, and descriptors that it has. */
const MAX_CONNECTIONS = 50
const DESCRIPTORS = 2_000

let data: string
let host: RunningHost
beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'sandwire-hostile-'))
  await writeFile(join(data, 'settings.json'), JSON.stringify({ connections: { total: MAX_CONNECTIONS } }), {
    mode: 0o600,
  })
  host = await startHost({ data, prefix: ['prlimit', `--nofile=${DESCRIPTORS}:${DESCRIPTORS}`] })
})
afterAll(async () => {
  await host.stop()
  await rm(data, { recursive: true, force: true })
})

function findWorkerd(): number | undefined {
  return readProcessTable().find(({ name, parentPid }) => name === 'workerd' && parentPid === host.pid)?.pid
}

async function openSocket(): Promise<Socket> {
  const socket = connect(host.port, '127.0.0.1')
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once('connect', resolve)
  socket.once('error', reject)
  await promise
  return socket
}

/** Everything that the server sends for these bytes until it closes the connection, or until it has answered `responses`. */
async function exchange(bytes: string, responses: number): Promise<{ text: string; isClosed: boolean }> {
  const socket = await openSocket()
  let text = ''
  let isClosed = false
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.on('close', () => (isClosed = true))
  socket.on('error', () => undefined)
  socket.write(bytes, 'latin1')
  const count = (): number => text.match(/HTTP\/1\.1 \d{3} /g)?.length ?? 0
  await eventually(() => isClosed || count() >= responses, { what: 'the responses' })
  socket.destroy()
  return { text, isClosed }
}

describe('a request whose end is ambiguous (threat T50)', () => {
  const head = (): string => `Host: 127.0.0.1:${host.port}\r\n`
  /** What a proxy took for a part of the first request. */
  const second = (): string => `GET /healthz?smuggled HTTP/1.1\r\n${head()}\r\n`

  test.each([
    ['Content-Length and Transfer-Encoding', 'Content-Length: 6\r\nTransfer-Encoding: chunked\r\n', 400],
    ['Transfer-Encoding and Content-Length', 'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', 400],
    ['two lengths', 'Content-Length: 5\r\nContent-Length: 6\r\n', 500],
    ['a signed length', 'Content-Length: +5\r\n', 500],
    ['two transfer codings', 'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n', 500],
    ['an unknown transfer coding', 'Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n', 500],
    ['a space before the colon', 'Transfer-Encoding : chunked\r\nContent-Length: 5\r\n', 400],
    ['a folded header', 'Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n', 400],
  ])('is refused and its connection closed: %s', async (_, headers, status) => {
    const { text, isClosed } = await exchange(
      `POST /api/signin HTTP/1.1\r\n${head()}${headers}\r\n0\r\n\r\n${second()}`,
      2,
    )
    expect(text).toStartWith(`HTTP/1.1 ${status} `)
    expect(text.match(/HTTP\/1\.1 \d{3} /g)).toHaveLength(1)
    expect(isClosed).toBe(true)
  })

  test('is no other request: the next one on the connection is answered', async () => {
    const { text, isClosed } = await exchange(
      `POST /api/signin HTTP/1.1\r\n${head()}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n${second()}`,
      2,
    )
    expect(text.match(/HTTP\/1\.1 \d{3} /g)).toHaveLength(2)
    expect(isClosed).toBe(false)
  })
})

test('more idle connections than control has descriptors do not end it (threat T50)', async () => {
  const pid = findWorkerd()
  expect(pid).toBeDefined()
  const held = await openSocket()
  held.write(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${host.port}\r\n\r\n`)
  const sockets: Socket[] = []
  let closed = 0
  for (let count = 0; count < DESCRIPTORS + 500; count += 1) {
    const socket = connect(host.port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.on('close', () => (closed += 1))
    socket.resume()
    sockets.push(socket)
  }
  await eventually(() => closed > MAX_CONNECTIONS, { what: 'connections to be closed' })
  expect((await host.fetch('/api/whoami')).status).toBe(200)
  expect(findWorkerd()).toBe(Number(pid))
  for (const socket of [held, ...sockets]) socket.destroy()
})

test('a proxy that passes client addresses in a header that is not configured is reported with what to set', async () => {
  await host.fetch('/healthz', { headers: { 'x-forwarded-for': '203.0.113.9' } })
  const line = 'SANDWIRE_CLIENT_ADDRESS_HEADER=X-Forwarded-For'
  await eventually(() => host.output().includes(line), { what: 'the notice' })
  await host.fetch('/healthz', { headers: { 'x-forwarded-for': '203.0.113.9' } })
  expect(host.output().split(line)).toHaveLength(2)
})
