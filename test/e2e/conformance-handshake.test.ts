import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  encodeClosePayload,
  encodeFrame,
  eventually,
  OPCODE,
  openRawTcp,
  type RawTcp,
} from '@sandwire/testing'
import {
  type UnaffectedPlainSession,
  openUnaffectedPlainSession,
} from './support/unaffected-plain-session.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

/** A header as it is sent; a name may repeat. */
type Header = readonly [name: string, value: string]

interface HandshakeCase {
  /** Starts with the section that requires it: of RFC 6455, or of RFC 9110 and 9112 for HTTP. */
  readonly title: string
  readonly request?: string
  /** Headers of the valid handshake to change, or to omit. */
  readonly change?: Readonly<Record<string, string | undefined>>
  /** Headers sent after those. */
  readonly add?: readonly Header[]
  readonly body?: string
  readonly status: number
  /** The subprotocol in the response; none by default. */
  readonly subprotocol?: string
}

/** The head of the server's response. */
interface ResponseHead {
  readonly status: number
  readonly headers: Headers
}

/** Any 16 bytes in base64. */
const KEY = Buffer.from('sandwire raw key').toString('base64')

const REQUEST = 'GET /attach?cmd=cat HTTP/1.1'

const VERSION: readonly HandshakeCase[] = [
  ...['777', '8', '12', '13x', '12, 13', ''].map((version) => ({
    title: `4.2.1 version "${version}"`,
    change: { 'Sec-WebSocket-Version': version },
    status: 426,
  })),
  { title: '4.2.1 no version', change: { 'Sec-WebSocket-Version': undefined }, status: 426 },
]

const KEYS: readonly HandshakeCase[] = [
  { title: '4.2.1 no key', change: { 'Sec-WebSocket-Key': undefined }, status: 400 },
  { title: '4.2.1 empty key', change: { 'Sec-WebSocket-Key': '' }, status: 400 },
  { title: '4.2.1 short key', change: { 'Sec-WebSocket-Key': 'YQ==' }, status: 400 },
  { title: '4.2.1 long key', change: { 'Sec-WebSocket-Key': 'A'.repeat(100) }, status: 400 },
  {
    title: '4.2.1 key that is not base64',
    change: { 'Sec-WebSocket-Key': `${'!'.repeat(22)}==` },
    status: 400,
  },
  { title: '4.2.1 two keys', add: [['Sec-WebSocket-Key', KEY]], status: 400 },
]

const UPGRADE: readonly HandshakeCase[] = [
  { title: '4.2.1 a valid handshake', status: 101 },
  { title: '4.2.1 no Upgrade', change: { Upgrade: undefined }, status: 426 },
  { title: '4.2.1 Upgrade in mixed case', change: { Upgrade: 'WebSocket' }, status: 101 },
  { title: '4.2.1 Upgrade to h2c', change: { Upgrade: 'h2c' }, status: 426 },
  { title: '4.2.1 Upgrade to a list', change: { Upgrade: 'websocket, h2c' }, status: 426 },
  { title: '4.2.1 no Connection', change: { Connection: undefined }, status: 426 },
  { title: '4.2.1 Connection: close', change: { Connection: 'close' }, status: 426 },
  { title: '4.2.1 Connection with more', change: { Connection: 'keep-alive, Upgrade' }, status: 101 },
  { title: '4.2.1 POST', request: 'POST /attach?cmd=cat HTTP/1.1', status: 426 },
  { title: '4.2.1 HEAD', request: 'HEAD /attach?cmd=cat HTTP/1.1', status: 426 },
  { title: '4.2.1 body on GET', add: [['Content-Length', '5']], body: 'hello', status: 400 },
  {
    title: '4.2.1 chunked body on GET',
    add: [['Transfer-Encoding', 'chunked']],
    body: '5\r\nhello\r\n0\r\n\r\n',
    status: 400,
  },
  {
    title: '9112 6.1 both lengths',
    add: [
      ['Content-Length', '5'],
      ['Transfer-Encoding', 'chunked'],
    ],
    body: '0\r\n\r\n',
    status: 400,
  },
  { title: '4.2.1 Content-Length: 0', add: [['Content-Length', '0']], status: 101 },
]

const OFFERS: readonly (readonly [offer: string, chosen?: string | undefined, status?: number])[] = [
  ['sandwire.v1', 'sandwire.v1'],
  ['sandwire.v1, sandwire.v1', 'sandwire.v1'],
  ['chat, sandwire.v1', 'sandwire.v1'],
  ['sandwire.v1,chat', 'sandwire.v1'],
  [`${Array.from({ length: 1000 }, (_, index) => `p${index}`).join(', ')}, sandwire.v1`, 'sandwire.v1'],
  ['chat', undefined, 426],
  ['chat, superchat', undefined, 426],
  ['SANDWIRE.V1', undefined, 426],
  ['sandwire.v1x', undefined, 426],
  ['sandwire.v9', undefined, 426],
  ['', undefined],
  [', ,', undefined],
]
const SUBPROTOCOLS: readonly HandshakeCase[] = OFFERS.map(([offer, chosen, status = 101]) => ({
  title: `4.2.2 [V3] subprotocols "${offer.slice(-40)}"`,
  add: [['Sec-WebSocket-Protocol', offer]],
  status,
  ...(chosen === undefined ? {} : { subprotocol: chosen }),
}))

const EXTENSIONS: readonly HandshakeCase[] = [
  'permessage-deflate',
  'permessage-deflate; client_max_window_bits; server_max_window_bits=15',
  'permessage-deflate; server_no_context_takeover, permessage-deflate, x-webkit-deflate-frame',
  ';;;="',
].map((offer) => ({
  title: `9.1 extensions "${offer}" are never accepted`,
  add: [['Sec-WebSocket-Extensions', offer]],
  status: 101,
}))

const HTTP: readonly HandshakeCase[] = [
  { title: '9112 2.3 HTTP/2.0', request: 'GET /attach?cmd=cat HTTP/2.0', status: 505 },
  { title: '9113 3.4 HTTP/2 preface', request: 'PRI * HTTP/2.0\r\n\r\nSM', status: 400 },
  { title: '9112 3.2 no Host', change: { Host: undefined }, status: 400 },
  { title: '9112 3.2 two Hosts', add: [['Host', 'evil.example']], status: 421 },
  { title: '9112 3.2 another Host', change: { Host: 'evil.example' }, status: 421 },
  { title: '9112 5.1 space before the colon', add: [['X-A ', 'b']], status: 400 },
  { title: '9112 5.2 folded header', add: [['X-A', 'b\r\n c']], status: 400 },
  { title: '9110 5.5 NUL in a header', add: [['X-A', 'a\0b']], status: 400 },
  { title: '9112 2.2 TLS instead of HTTP', request: '\x16\x03\x01\0\xa5\x01\0\0\xa1\x03\x03', status: 400 },
  { title: '10.2 an origin that is not listed', add: [['Origin', 'https://evil.example']], status: 403 },
  { title: '10.2 origin null', add: [['Origin', 'null']], status: 403 },
  { title: '10.5 no secret', change: { Authorization: undefined }, status: 401 },
  {
    title: '10.5 wrong secret',
    change: { Authorization: 'Bearer wrong-secret-of-some-length' },
    status: 401,
  },
  { title: '10.5 two secrets', add: [['Authorization', 'Bearer other']], status: 401 },
  { title: '10.4 a header of 15,000 bytes', add: [['X-A', 'a'.repeat(15_000)]], status: 101 },
  { title: '10.4 a header of 1 MiB', add: [['X-A', 'a'.repeat(1 << 20)]], status: 431 },
  {
    title: '10.4 10,000 headers',
    add: Array.from({ length: 10_000 }, (_, index) => [`X-${index}`, 'a']),
    status: 431,
  },
  {
    title: '10.4 a request target of 1 MiB',
    request: `GET /attach?cmd=${'a'.repeat(1 << 20)} HTTP/1.1`,
    status: 431,
  },
]

function parseResponseHead(bytes: Buffer): ResponseHead | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const headers = new Headers(lines.map((line) => line.split(/: ?/, 2) as [string, string]))
  return { status: Number(statusLine.split(' ')[1]), headers }
}

async function readResponseHead(tcp: RawTcp): Promise<ResponseHead> {
  let received = Buffer.alloc(0)
  for (let bytes = await tcp.read(); bytes !== undefined; bytes = await tcp.read()) {
    received = Buffer.concat([received, bytes])
    const head = parseResponseHead(received)
    if (head !== undefined) return head
  }
  throw new Error(`Connection ended after "${received.toString('latin1')}"`)
}

describe('RFC 6455 opening handshake', () => {
  let sandboxd: RunningSandboxd
  let unaffected: UnaffectedPlainSession

  beforeAll(async () => {
    sandboxd = await startSandboxd()
    unaffected = await openUnaffectedPlainSession(sandboxd)
  })

  afterAll(async () => {
    await unaffected[Symbol.asyncDispose]()
    expect(await sandboxd.stop()).toEqual({ code: 0, signal: null })
  })

  function write({ request = REQUEST, change = {}, add = [], body = '' }: Partial<HandshakeCase>): string {
    const good: Record<string, string | undefined> = {
      Host: `127.0.0.1:${sandboxd.port}`,
      Authorization: sandboxd.headers.authorization,
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': KEY,
    }
    const headers = [...Object.entries({ ...good, ...change }), ...add]
    const lines = headers
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}: ${value}`)
    return `${[request, ...lines].join('\r\n')}\r\n\r\n${body}`
  }

  async function listSessions(): Promise<Set<string>> {
    const { sessions }: { sessions: { id: string }[] } = await (await sandboxd.fetch('/sessions')).json()
    return new Set(sessions.map(({ id }) => id))
  }

  const cases = [...UPGRADE, ...VERSION, ...KEYS, ...SUBPROTOCOLS, ...EXTENSIONS, ...HTTP]

  test.each(cases.map((each) => [each.title, each] as const))('§%s', async (_, each) => {
    const before = await listSessions()
    await using tcp = await openRawTcp(sandboxd)
    // The server may reset the connection before it has read everything.
    tcp.write(Buffer.from(write(each), 'latin1')).catch(() => {})
    const { status, headers } = await readResponseHead(tcp)
    expect(status).toBe(each.status)
    expect(headers.get('sec-websocket-protocol')).toBe(each.subprotocol ?? null)
    expect(headers.get('sec-websocket-extensions')).toBeNull()
    if (status === 426 && each.title.includes('version'))
      expect(headers.get('sec-websocket-version')).toBe('13')
    if (status !== 101) expect([...(await listSessions())].filter((id) => !before.has(id))).toEqual([])
    else await tcp.write(encodeFrame({ opcode: OPCODE.close, payload: encodeClosePayload(1000) }))
    await unaffected.check()
  })

  test('accepts a handshake sent one byte at a time', async () => {
    await using tcp = await openRawTcp(sandboxd)
    for (const byte of Buffer.from(write({ request: 'GET /attach?cmd=true HTTP/1.1' }))) {
      await tcp.write(new Uint8Array([byte]))
      await Bun.sleep(0)
    }
    expect((await readResponseHead(tcp)).status).toBe(101)
    expect(await tcp.ended).toBe('fin')
  })

  test('accepts a frame in the same segment as the handshake', async () => {
    await using tcp = await openRawTcp(sandboxd)
    await tcp.write(Buffer.concat([Buffer.from(write({})), encodeFrame({ payload: 'early' })]))
    let received = ''
    await eventually(
      async () => {
        received += Buffer.from((await tcp.read()) ?? '').toString('latin1')
        return received.endsWith('\x01early')
      },
      { what: 'the echo' },
    )
  })

  test('does not serve a second request after the upgrade', async () => {
    await using tcp = await openRawTcp(sandboxd)
    await tcp.write(write({}) + write({}))
    let received = ''
    for (let bytes = await tcp.read(); bytes !== undefined; bytes = await tcp.read()) {
      received += Buffer.from(bytes).toString('latin1')
    }
    expect(received.match(/HTTP\/1\.1/g)).toHaveLength(1)
    expect(received).toContain('\x03\xea')
  })

  test('starts no session for connections that never finish their handshake', async () => {
    const before = await listSessions()
    const half = await Promise.all(Array.from({ length: 200 }, () => openRawTcp(sandboxd)))
    await Promise.all(half.map((tcp) => tcp.write('GET /attach?cmd=cat HTTP/1.1\r\nHost: ')))
    await unaffected.check()
    for (const tcp of half) tcp.reset()
    expect([...(await listSessions())].filter((id) => !before.has(id))).toEqual([])
    await unaffected.check()
  })
})
