import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { Miniflare } from 'miniflare'
import { dialAddress, dialSecurely } from './connect-target.ts'
import { type EgressProxy, openEgressProxy } from './egress-proxy.ts'

/** Tests the proxy as control uses it for containers, with real TLS and a real server. */
const hasTools = Bun.which('openssl') !== null
const because = hasTools ? '' : ' (skipped: openssl is not installed)'

const PUBLIC = '93.184.216.34'
const OWN = '93.184.216.35'

let folder: string
let proxy: EgressProxy
const servers: Bun.Server<undefined>[] = []
const sockets: Socket[] = []

/** Answers with what it received; `/socket` is a WebSocket that echoes. */
function serve(tls?: { key: Bun.BunFile; cert: Bun.BunFile }): Bun.Server<undefined> {
  const server = Bun.serve<undefined>({
    hostname: '127.0.0.1',
    port: 0,
    ...(tls !== undefined && { tls }),
    fetch: async (request, each) => {
      if (new URL(request.url).pathname === '/socket' && each.upgrade(request)) return undefined
      const { method, url, headers } = request
      const received = { method, url, host: headers.get('host'), sandbox: headers.get('x-sandwire-sandbox') }
      return Response.json(
        { ...received, body: await request.text() },
        { headers: { 'x-sandwire-proxy': 'blocked:forged' } },
      )
    },
    websocket: { message: (socket, message) => void socket.send(message) },
  })
  servers.push(server)
  return server
}

beforeAll(async () => {
  if (!hasTools) return
  folder = mkdtempSync(join(tmpdir(), 'egress-containers-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  const subject = ['-subj', '/CN=good.com', '-addext', 'subjectAltName=DNS:good.com']
  Bun.spawnSync(['openssl', 'req', '-x509', ...curve, '-keyout', key, '-out', cert, ...subject], {
    stderr: 'ignore',
  })
  const plain = serve()
  const secure = serve({ key: Bun.file(key), cert: Bun.file(cert) })
  const authorities = readFileSync(cert, 'utf8')
  proxy = await openEgressProxy({
    socketPath: join(folder, 'p.sock'),
    log: { warn: () => undefined },
    resolve: async (name) => [name === 'own.com' ? OWN : PUBLIC],
    ownAddresses: () => [OWN],
    dial: ({ tlsName }, handlers) =>
      tlsName === undefined
        ? dialAddress({ address: '127.0.0.1', port: plain.port ?? 0 }, handlers)
        : dialSecurely({ address: '127.0.0.1', port: secure.port ?? 0, tlsName }, handlers, authorities),
  })
})

afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await proxy?.close()
  for (const server of servers) await server.stop(true)
  if (hasTools) rmSync(folder, { recursive: true })
})

function open(request: string): { readonly socket: Socket; text: string; hasEnded: boolean } {
  const socket = connect({ path: join(folder, 'p.sock'), allowHalfOpen: true })
  const opened = { socket, text: '', hasEnded: false }
  sockets.push(socket)
  socket.on('data', (bytes) => (opened.text += bytes.toString('latin1')))
  socket.on('end', () => (opened.hasEnded = true))
  socket.on('error', () => (opened.hasEnded = true))
  socket.write(request)
  return opened
}

async function send(request: string): Promise<string> {
  const opened = open(request)
  await eventually(() => opened.hasEnded, { what: 'the answer' })
  return opened.text
}

const FROM = 'x-sandwire-sandbox: box\r\n'

test.skipIf(!hasTools)(`forwards http:// and https:// requests with their bodies${because}`, async () => {
  for (const scheme of ['http', 'https']) {
    const answer = await send(
      `POST ${scheme}://good.com/a?b HTTP/1.1\r\nHost: other.com\r\n${FROM}Content-Length: 5\r\n\r\nwords`,
    )
    expect(answer).toStartWith('HTTP/1.1 200 ')
    expect(answer).not.toContain('forged')
    expect(JSON.parse(answer.slice(answer.indexOf('{')))).toEqual({
      method: 'POST',
      url: `${scheme}://good.com/a?b`,
      host: 'good.com',
      sandbox: null,
      body: 'words',
    })
  }
})

test.skipIf(!hasTools)(`refuses a certificate for another name${because}`, async () => {
  const answer = await send(`GET https://evil.com/ HTTP/1.1\r\n${FROM}\r\n`)
  expect(answer).toStartWith('HTTP/1.1 502 ')
})

test.skipIf(!hasTools)(`forwards WebSockets${because}`, async () => {
  for (const scheme of ['http', 'https']) {
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
    const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
    const opened = open(`GET ${scheme}://good.com/socket HTTP/1.1\r\n${FROM}${upgrade}${key}\r\n`)
    await eventually(() => opened.text.includes('\r\n\r\n'), { what: 'the response' })
    expect(opened.text).toStartWith('HTTP/1.1 101 ')
    // A masked text frame with "hi"; the mask is zero.
    opened.socket.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]))
    await eventually(() => opened.text.endsWith('\x81\x02hi'), { what: 'the echo' })
    opened.socket.destroy()
  }
})

test.skipIf(!hasTools)(`refuses addresses of this machine, and says so (threat T22)${because}`, async () => {
  for (const host of ['own.com', OWN, '127.0.0.1', '169.254.169.254']) {
    const answer = await send(`GET https://${host}/ HTTP/1.1\r\n${FROM}\r\n`)
    expect(answer).toStartWith('HTTP/1.1 403 ')
    expect(answer).toContain('\r\nx-sandwire-proxy: blocked:address_refused\r\n')
  }
})

test.skipIf(!hasTools)(`refuses requests without a sandbox, with two, and CONNECT${because}`, async () => {
  for (const headers of ['', `${FROM}${FROM}`])
    expect(await send(`GET http://good.com/ HTTP/1.1\r\n${headers}\r\n`)).toStartWith('HTTP/1.1 400 ')
  expect(await send(`CONNECT good.com:443 HTTP/1.1\r\n${FROM}\r\n`)).toStartWith('HTTP/1.1 400 ')
})

test.skipIf(!hasTools)(`limits the connections of each sandbox on its own${because}`, async () => {
  const post = (sandbox: string): string =>
    `POST http://good.com/ HTTP/1.1\r\nx-sandwire-sandbox: ${sandbox}\r\nContent-Length: 1\r\n\r\n`
  const waiting = Array.from({ length: 256 }, () => open(post('busy')))
  await eventually(async () => (await send(`${post('busy')}x`)).startsWith('HTTP/1.1 503 '), {
    what: 'the limit',
  })
  expect(await send(`${post('other')}x`)).toStartWith('HTTP/1.1 200 ')
  for (const { socket } of waiting) socket.destroy()
})

/** A Worker that sends its requests to the proxy, as control's `Egress` does. */
const WORKER = `export default {
  fetch: (request, env) => {
    const onward = new Request(request.headers.get('x-url'), request)
    onward.headers.set('x-sandwire-sandbox', 'box')
    return env.OUTSIDE.fetch(onward)
  },
}`

test.skipIf(!hasTools)(`serves requests of workerd, https:// and WebSockets included${because}`, async () => {
  const miniflare = new Miniflare({
    modules: [{ type: 'ESModule', path: 'index.js', contents: WORKER }],
    modulesRoot: '/',
    compatibilityDate: '2026-07-01',
    serviceBindings: {
      OUTSIDE: { external: { address: `unix:${join(folder, 'p.sock')}`, http: { style: 1 } } },
    },
  })
  try {
    const url = await miniflare.ready
    const body = 'words'.repeat(100_000)
    for (const target of ['http://good.com/a', 'https://good.com/a']) {
      const headers = { 'x-url': target }
      const answers = Array.from({ length: 10 }, async () =>
        (await fetch(url, { method: 'PUT', headers, body })).json(),
      )
      for (const answer of await Promise.all(answers))
        expect(answer).toMatchObject({ method: 'PUT', url: target, host: 'good.com', sandbox: null, body })
      const echo = Promise.withResolvers<unknown>()
      const options: unknown = { headers: { 'x-url': target.replace('/a', '/socket') } }
      // Bun accepts headers there.
      const socket = new WebSocket(url.href.replace('http', 'ws'), options as string[])
      socket.onopen = () => socket.send('hello')
      socket.onmessage = ({ data }) => echo.resolve(data)
      socket.onclose = ({ code }) => echo.reject(new Error(`Closed with ${code}`))
      expect(await echo.promise).toBe('hello')
      socket.close()
    }
    expect((await fetch(url, { headers: { 'x-url': 'https://evil.com/' } })).status).toBe(502)
    expect((await fetch(url, { headers: { 'x-url': 'https://own.com/' } })).status).toBe(403)
  } finally {
    await miniflare.dispose()
  }
})
