import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EgressProxy, openEgressProxy } from './egress-proxy.ts'
import { dialAddress } from './connect-target.ts'

/** Tests the proxy with an independent client, real TLS and a real server. */
const hasTools = Bun.which('curl') !== null && Bun.which('openssl') !== null
const because = hasTools ? '' : ' (skipped: curl or openssl is not installed)'

const BODY = randomBytes(3 * 1024 * 1024)
let folder: string
let proxy: EgressProxy
let splice: Server
let proxyUrl: string
const servers: { stop(closeActive: boolean): void }[] = []

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Answers a download with bytes, and an upload with their hash. */
async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  if (pathname === '/inside') return Response.redirect('http://169.254.169.254/latest/meta-data/')
  if (request.method === 'GET') return new Response(BODY)
  return new Response(`${request.headers.get('host')} ${sha256(await request.bytes())}`)
}

beforeAll(async () => {
  if (!hasTools) return
  folder = mkdtempSync(join(tmpdir(), 'egress-curl-'))
  const key = join(folder, 'key.pem')
  const cert = join(folder, 'cert.pem')
  const subject = ['-subj', '/CN=good.com', '-addext', 'subjectAltName=DNS:good.com']
  const made = Bun.spawnSync(
    [
      'openssl',
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '2',
      '-keyout',
      key,
      '-out',
      cert,
      ...subject,
    ],
    { stderr: 'ignore' },
  )
  expect(made.exitCode).toBe(0)
  const tls = { key: Bun.file(key), cert: Bun.file(cert) }
  const secure = Bun.serve({ hostname: '127.0.0.1', port: 0, tls, fetch: answer })
  const plain = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answer })
  servers.push(secure, plain)
  proxy = await openEgressProxy({
    socketPath: join(folder, 'p.sock'),
    network: { policy: 'allowlist', allow: ['good.com'] },
    log: { warn: () => undefined },
    resolve: async () => ['93.184.216.34'],
    dial: ({ port }, handlers) =>
      dialAddress({ address: '127.0.0.1', port: (port === 443 ? secure : plain).port ?? 0 }, handlers),
  })
  // This version of curl does not support proxies on Unix sockets.
  splice = createServer({ allowHalfOpen: true }, (client) => {
    const way = connect({ path: join(folder, 'p.sock'), allowHalfOpen: true })
    client.pipe(way).pipe(client)
    client.on('error', () => way.destroy())
    way.on('error', () => client.destroy())
  })
  await new Promise<void>((done) => splice.listen(0, '127.0.0.1', done))
  const address = splice.address()
  proxyUrl = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
})

afterAll(async () => {
  if (!hasTools) return
  for (const server of servers) server.stop(true)
  splice.close()
  await proxy.close()
  rmSync(folder, { recursive: true })
})

async function curl(...args: readonly string[]): Promise<{ code: number; stdout: Buffer; stderr: string }> {
  const child = Bun.spawn(['curl', '-sS', '--max-time', '20', '--proxy', proxyUrl, ...args], {
    env: { PATH: process.env['PATH'] ?? '' },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).bytes(),
    new Response(child.stderr).text(),
  ])
  return { code: await child.exited, stdout: Buffer.from(stdout), stderr }
}

test.skipIf(!hasTools)(`curl downloads over HTTPS and HTTP${because}`, async () => {
  const secure = await curl('--cacert', join(folder, 'cert.pem'), 'https://good.com/')
  expect(secure).toMatchObject({ code: 0, stderr: '' })
  expect(sha256(secure.stdout)).toBe(sha256(BODY))
  const plain = await curl('http://good.com/')
  expect(sha256(plain.stdout)).toBe(sha256(BODY))
})

test.skipIf(!hasTools)(
  `curl uploads with a length and in chunks, several on one command line${because}`,
  async () => {
    const file = join(folder, 'body')
    await Bun.write(file, BODY)
    const url = 'http://good.com/up'
    const sized = await curl('-T', file, url, '-T', file, url)
    expect(sized.stdout.toString()).toBe(`good.com ${sha256(BODY)}`.repeat(2))
    const chunked = await curl('-H', 'Transfer-Encoding: chunked', '-T', file, url)
    expect(chunked.stdout.toString()).toBe(`good.com ${sha256(BODY)}`)
  },
)

test.skipIf(!hasTools)(`curl receives the name of the blocked host${because}`, async () => {
  expect((await curl('http://evil.com/')).stdout.toString()).toStartWith('Sandwire blocked evil.com:80: ')
  const secure = await curl('https://evil.com/')
  expect(secure.code).not.toBe(0)
  expect(secure.stderr).toContain('403')
})

test.skipIf(!hasTools)(
  `curl cannot follow a redirect to an internal address (threat T21)${because}`,
  async () => {
    const { stdout } = await curl('-L', 'http://good.com/inside')
    expect(stdout.toString()).toStartWith('Sandwire blocked 169.254.169.254:80: ')
  },
)
