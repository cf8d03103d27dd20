import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NetworkSpec } from '@sandwire/internal-api'
import { eventually } from '@sandwire/testing'
import { type EgressProxy, type EgressProxyOptions, openEgressProxy } from './egress-proxy.ts'
import { dialAddress, type Endpoint } from './connect-target.ts'

const PUBLIC = '93.184.216.34'
const OPEN: NetworkSpec = { policy: 'open', allow: [] }
const GOOD: NetworkSpec = { policy: 'allowlist', allow: ['good.com'] }

/** A client that collects the received bytes and never closes its side by itself. */
class Client {
  readonly socket: Socket
  text = ''
  hasEnded = false
  isClosed = false

  constructor(path: string) {
    this.socket = connect({ path, allowHalfOpen: true })
    this.socket.on('data', (bytes) => (this.text += bytes.toString('latin1')))
    this.socket.on('end', () => (this.hasEnded = true))
    this.socket.on('close', () => (this.isClosed = true))
    this.socket.on('error', () => (this.isClosed = true))
  }

  /** The bytes received until the other side ended. */
  async answer(): Promise<string> {
    await eventually(() => this.hasEnded || this.isClosed, { what: 'the end of the answer' })
    return this.text
  }
}

let folder: string
let server: Server
let port: number
let proxy: EgressProxy | undefined
const clients: Client[] = []
/** Connection handler of the target; the default echoes, and ends when its peer does. */
let serve: (socket: Socket) => void
const dialed: string[] = []
const resolved: string[] = []
const logged: unknown[] = []

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'egress-'))
  serve = (socket) => void socket.pipe(socket)
  server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined)
    serve(socket)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  port = typeof address === 'object' && address !== null ? address.port : 0
})

afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy()
  await proxy?.close()
  server.close()
  rmSync(folder, { recursive: true })
  dialed.length = 0
  resolved.length = 0
  logged.length = 0
})

async function open(network: NetworkSpec, more: Partial<EgressProxyOptions> = {}): Promise<EgressProxy> {
  proxy = await openEgressProxy({
    socketPath: join(folder, 'p.sock'),
    network,
    log: { warn: (event, fields) => void logged.push({ event, ...fields }) },
    resolve: async (name) => {
      resolved.push(name)
      return [PUBLIC]
    },
    dial: ({ address, port: stopRequested }: Endpoint, handlers) => {
      dialed.push(`${address} ${stopRequested}`)
      return dialAddress({ address: '127.0.0.1', port }, handlers)
    },
    ...more,
  })
  return proxy
}

function client(): Client {
  const made = new Client(join(folder, 'p.sock'))
  clients.push(made)
  return made
}

async function sendRequest(request: string): Promise<string> {
  const made = client()
  made.socket.write(Buffer.from(request, 'latin1'))
  return await made.answer()
}

function connectTo(target: string): Promise<string> {
  return sendRequest(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`)
}

async function tunnel(target = 'good.com:443'): Promise<Client> {
  const made = client()
  made.socket.write(`CONNECT ${target} HTTP/1.1\r\n\r\n`)
  await eventually(() => made.text.startsWith('HTTP/1.1 200 '), { what: 'the tunnel' })
  made.text = ''
  return made
}

describe('a tunnel', () => {
  test('forwards bytes and half-close in both directions', async () => {
    const { counts } = { counts: (await open(GOOD)).counts.bind(proxy) }
    const made = await tunnel()
    made.socket.write('hello')
    await eventually(() => made.text === 'hello', { what: 'the echo' })
    expect(made.hasEnded).toBe(false)
    made.socket.end(' world')
    expect(await made.answer()).toBe('hello world')
    expect(counts()).toMatchObject({ connections: 1, blocked: 0, sentBytes: 11, receivedBytes: 11 })
    expect(dialed).toEqual([`${PUBLIC} 443`])
    expect(resolved).toEqual(['good.com'])
  })

  test('keeps sending to a target that ended its side', async () => {
    let seen = ''
    serve = (socket) => {
      socket.on('data', (bytes) => (seen += bytes.toString()))
      socket.end('bye')
    }
    await open(GOOD)
    const made = client()
    made.socket.write('CONNECT good.com:443 HTTP/1.1\r\n\r\n')
    expect(await made.answer()).toEndWith('bye')
    made.socket.end('still here')
    await eventually(() => seen === 'still here', { what: 'the late bytes' })
  })

  test('forwards bytes that the target sends first, after the 200 response', async () => {
    serve = (socket) => void socket.end('220 hello')
    await open(GOOD)
    const made = client()
    made.socket.write('CONNECT good.com:443 HTTP/1.1\r\n\r\n')
    expect(await made.answer()).toBe('HTTP/1.1 200 Connection established\r\n\r\n220 hello')
  })

  test('forwards bytes that the client sent before the tunnel was open', async () => {
    await open(GOOD)
    const made = client()
    made.socket.end('CONNECT good.com:443 HTTP/1.1\r\n\r\nearly')
    expect(await made.answer()).toEndWith('\r\n\r\nearly')
  })

  test('applies back-pressure to the sender', async () => {
    let socketOfTarget: Socket | undefined
    serve = (socket) => {
      socketOfTarget = socket
      socket.pause()
    }
    const { counts } = await open(GOOD).then((it) => ({ counts: () => it.counts() }))
    const made = await tunnel()
    const bytes = Buffer.alloc(32 * 1024 * 1024, 7)
    made.socket.end(bytes)
    let before = -1
    await eventually(
      () => {
        const { sentBytes } = counts()
        const isStill = sentBytes > 0 && sentBytes === before
        before = sentBytes
        return isStill
      },
      { what: 'the sender to be held back' },
    )
    expect(counts().sentBytes).toBeLessThan(bytes.length / 2)
    let received = 0
    socketOfTarget?.on('data', (chunk) => (received += chunk.length))
    socketOfTarget?.resume()
    await eventually(() => received === bytes.length, { what: 'every byte' })
  })

  test('closes the client when the target fails', async () => {
    let socketOfTarget: Socket | undefined
    serve = (socket) => void (socketOfTarget = socket)
    await open(GOOD)
    const made = await tunnel()
    await eventually(() => socketOfTarget !== undefined, { what: 'the target' })
    socketOfTarget?.resetAndDestroy()
    await eventually(() => made.isClosed || made.hasEnded, { what: 'the end' })
  })

  test('closes the target when the client is gone', async () => {
    let isGone = false
    serve = (socket) => {
      socket.resume()
      socket.on('end', () => (isGone = true))
      socket.on('close', () => (isGone = true))
    }
    await open(GOOD)
    const made = await tunnel()
    made.socket.destroy()
    await eventually(() => isGone, { what: 'the target to see it' })
  })
})

describe('a request', () => {
  test('is forwarded in origin form, up to its end', async () => {
    let seen = ''
    serve = (socket) => {
      socket.on('data', (bytes) => {
        seen += bytes.toString()
        if (seen.endsWith('abc'))
          socket.end('HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok')
      })
    }
    await open(GOOD)
    const answer = await sendRequest(
      'POST http://good.com/x HTTP/1.1\r\nHost: evil.com\r\nProxy-Authorization: s3cret\r\nContent-Length: 3\r\n\r\n' +
        'abcGET http://evil.com/ HTTP/1.1\r\n\r\n',
    )
    expect(answer).toBe('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
    expect(seen).toBe(
      'POST /x HTTP/1.1\r\nHost: good.com\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc',
    )
  })

  test('answers Expect: 100-continue', async () => {
    serve = (socket) => void socket.once('data', () => socket.end('HTTP/1.1 204 No Content\r\n\r\n'))
    await open(GOOD)
    const answer = await sendRequest(
      'PUT http://good.com/ HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n',
    )
    expect(answer).toBe('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n')
  })

  test('answers 502 when the response is not HTTP', async () => {
    serve = (socket) => void socket.end('SSH-2.0-x\r\n\r\n')
    await open(GOOD)
    expect(await sendRequest('GET http://good.com/ HTTP/1.1\r\n\r\n')).toStartWith('HTTP/1.1 502 ')
    serve = (socket) => void socket.end('HTTP/1.1 200')
    expect(await sendRequest('GET http://good.com/ HTTP/1.1\r\n\r\n')).toStartWith('HTTP/1.1 502 ')
  })
})

describe('blocked targets (threat T22)', () => {
  test('an empty list blocks every name without resolving it', async () => {
    await open({ policy: 'allowlist', allow: [] })
    expect(await connectTo('good.com:443')).toStartWith('HTTP/1.1 403 ')
    expect(await sendRequest('GET http://good.com/ HTTP/1.1\r\n\r\n')).toStartWith('HTTP/1.1 403 ')
    expect({ resolved, dialed }).toEqual({ resolved: [], dialed: [] })
  })

  test('none blocks everything', async () => {
    await open({ policy: 'none', allow: ['good.com'] })
    expect(await connectTo('good.com:443')).toStartWith('HTTP/1.1 403 ')
    expect(dialed).toEqual([])
  })

  test('names the host in the response and once in the log', async () => {
    const { blocked } = await open(GOOD).then((it) => ({ blocked: () => it.blocked() }))
    const answer = await connectTo('Evil.com:443')
    expect(answer).toContain('\r\n\r\nSandwire blocked evil.com:443: it is not on the allowlist')
    expect(answer.trimEnd().split('\n').at(-1)).toEndWith('--allow evil.com')
    await connectTo('evil.com.:443')
    expect(logged).toEqual([{ event: 'egress_blocked', host: 'evil.com', port: 443, reason: 'not_listed' }])
    expect(blocked()).toEqual([{ host: 'evil.com', port: 443, reason: 'not_listed', count: 2 }])
  })

  test('a sandbox cannot fill the log', async () => {
    await open(GOOD)
    await Promise.all(Array.from({ length: 100 }, (_, index) => connectTo(`e${index}.com:443`)))
    expect(logged.length).toBeGreaterThan(0)
    expect(logged.length).toBeLessThan(60)
  })

  test.each([
    'evil.com\0.good.com:443',
    'good.com.evil.com:443',
    'good.com:443@evil.com:443',
    'good.com\r\nX: evil.com:443',
    `${PUBLIC}:443`,
    `[::ffff:${PUBLIC}]:443`,
    'good.com:25',
    'good.com:22',
  ])('%j is not good.com', async (target) => {
    await open(GOOD)
    expect(await connectTo(target)).toMatch(/^HTTP\/1\.1 40[03] /)
    expect(dialed).toEqual([])
  })

  test('other notations of good.com are allowed', async () => {
    await open(GOOD)
    const made = await tunnel('GOOD.COM.:443')
    made.socket.end()
    await made.answer()
    expect(resolved).toEqual(['good.com'])
  })
})

describe('addresses that are blocked for every sandbox (threat T21)', () => {
  test.each([
    '169.254.169.254:80',
    '[::ffff:169.254.169.254]:80',
    '0x7f.1:80',
    '2130706433:80',
    '0:80',
    '[::]:80',
    'localhost.:80',
    '[fd00:ec2::254]:80',
    '100.100.100.200:80',
    '168.63.129.16:80',
    '127.0.0.1:80',
    '[::1]:80',
    '[64:ff9b::7f00:1]:80',
    '[2002:7f00:1::]:80',
    'a@127.0.0.1:80',
    'any.example:25',
  ])('%s is refused with an open network', async (target) => {
    await open(OPEN)
    expect(await connectTo(target)).toMatch(/^HTTP\/1\.1 40[03] /)
    expect(await sendRequest(`GET http://${target.replace(/:80$/, '')}/ HTTP/1.1\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 40[03] /,
    )
    expect(dialed).toEqual([])
  })

  test.each(['127.0.0.1', '10.0.0.1', '::1', '::ffff:10.0.0.1', '169.254.169.254', '0.0.0.0', 'fe80::1'])(
    'an allowed name that resolves to %s is refused',
    async (address) => {
      await open(GOOD, { resolve: async () => [PUBLIC, address] })
      expect(await connectTo('good.com:443')).toContain('sandboxes may not connect to this address')
      expect(dialed).toEqual([])
    },
  )

  test('refuses a listed address that is not public', async () => {
    await open({ policy: 'allowlist', allow: ['127.0.0.1', '10.0.0.1:80'] })
    expect(await connectTo('127.0.0.1:80')).toContain('sandboxes may not connect to this address')
    expect(await connectTo('10.0.0.1:80')).toStartWith('HTTP/1.1 403 ')
    expect(await connectTo('169.254.169.254:80')).not.toContain('--allow')
    expect(dialed).toEqual([])
  })

  test("this machine's own address is refused", async () => {
    await open(OPEN, { ownAddresses: () => [PUBLIC] })
    expect(await connectTo('good.com:443')).toStartWith('HTTP/1.1 403 ')
    expect(await connectTo(`${PUBLIC}:443`)).toStartWith('HTTP/1.1 403 ')
    expect(dialed).toEqual([])
  })

  test('resolves a name once, so that it cannot change between check and connect', async () => {
    const answers = [[PUBLIC], ['127.0.0.1']]
    await open(GOOD, { resolve: async () => answers.shift() ?? [] })
    const made = await tunnel()
    made.socket.end()
    await made.answer()
    expect(dialed).toEqual([`${PUBLIC} 443`])
    expect(answers).toHaveLength(1)
    expect(await connectTo('good.com:443')).toStartWith('HTTP/1.1 403 ')
  })

  test('refuses a redirect to an internal address', async () => {
    serve = (socket) =>
      void socket.once('data', () =>
        socket.end('HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n'),
      )
    await open(OPEN)
    expect(await sendRequest('GET http://good.com/ HTTP/1.1\r\n\r\n')).toContain(
      'Location: http://169.254.169.254/',
    )
    expect(await sendRequest('GET http://169.254.169.254/ HTTP/1.1\r\n\r\n')).toStartWith('HTTP/1.1 403 ')
    expect(dialed).toHaveLength(1)
  })
})

describe('limits', () => {
  test('a head that is too large is refused', async () => {
    await open(GOOD)
    expect(await sendRequest(`GET http://good.com/ HTTP/1.1\r\nA: ${'x'.repeat(20_000)}`)).toStartWith(
      'HTTP/1.1 431 ',
    )
    expect(await sendRequest(`GET http://good.com/${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`)).toStartWith(
      'HTTP/1.1 431 ',
    )
  })

  test('closes a connection whose head does not arrive', async () => {
    await open(GOOD, { headTimeoutMs: 20 })
    expect(await sendRequest('GET http://good.com/ HT')).toStartWith('HTTP/1.1 408 ')
  })

  test('limits connections, and accepts more after some close', async () => {
    await open(GOOD)
    const idle = Array.from({ length: 256 }, () => client())
    await eventually(() => proxy?.counts().connections === 256, { what: 'the connections' })
    expect(await connectTo('good.com:443')).toStartWith('HTTP/1.1 503 ')
    for (const { socket } of idle) socket.destroy()
    await eventually(async () => (await connectTo('evil.com:443')).startsWith('HTTP/1.1 403 '), {
      what: 'room',
    })
  })

  test('buffers a bounded number of bytes, and closes the connection that buffers the most', async () => {
    const wait = { timeoutMs: 15_000 }
    serve = (socket) => void socket.write(Buffer.alloc(8 * 1024 * 1024, 7))
    const maxHeldBytes = 256 * 1024
    const opened = await open(GOOD, { maxHeldBytes })
    const stalled = Array.from({ length: 8 }, () => client())
    for (const { socket } of stalled) {
      socket.pause()
      socket.write('CONNECT good.com:443 HTTP/1.1\r\n\r\n')
    }
    let heldBytes = 0
    const hasClosed = (): boolean => {
      heldBytes = Math.max(heldBytes, opened.counts().heldBytes)
      // A paused client does not notice that it was closed.
      return opened.counts().closedFull > 0
    }
    await eventually(hasClosed, { what: 'a connection to be closed', ...wait })
    expect(heldBytes).toBeLessThanOrEqual(maxHeldBytes)
    for (const { socket } of stalled) socket.destroy()
    await eventually(() => opened.counts().heldBytes === 0, {
      what: 'the buffers to be dropped',
      ...wait,
    })
  })

  test('ends a lookup when its client leaves, and counts the connection until then', async () => {
    const ended: string[] = []
    await open(OPEN, {
      resolve: (name, signal) =>
        new Promise((_resolve, reject) => {
          resolved.push(name)
          signal.addEventListener('abort', () => {
            ended.push(name)
            reject(new Error('aborted'))
          })
        }),
    })
    const waiting = Array.from({ length: 256 }, (_, index) => {
      const made = client()
      made.socket.write(`CONNECT slow${index}.com:443 HTTP/1.1\r\n\r\n`)
      return made
    })
    await eventually(() => resolved.length === 256, { what: 'the lookups' })
    expect(await connectTo('good.com:443')).toStartWith('HTTP/1.1 503 ')
    for (const { socket } of waiting) socket.destroy()
    await eventually(() => ended.length === 256, { what: 'the lookups to be canceled' })
    const made = client()
    made.socket.write('CONNECT good.com:443 HTTP/1.1\r\n\r\n')
    await eventually(() => resolved.includes('good.com'), { what: 'the next lookup' })
  })

  test('reports names that cannot be resolved and targets that do not answer', async () => {
    await open(OPEN, { resolve: () => Promise.reject(new Error('ENOTFOUND secret detail')) })
    expect(await connectTo('good.com:443')).toContain(
      'cannot connect to good.com:443: the name cannot be resolved\n',
    )
    await proxy?.close()
    await open(OPEN, { dial: () => Promise.reject(new Error('ECONNREFUSED')) })
    expect(await connectTo('good.com:443')).toContain(
      'cannot connect to good.com:443: the target does not respond\n',
    )
  })

  test('tries addresses in order, with both families among the first', async () => {
    const addresses = ['2606::1', '2606::2', '2606::3', PUBLIC]
    await open(OPEN, {
      resolve: async () => addresses,
      dial: ({ address }, handlers) => {
        dialed.push(address)
        if (address !== PUBLIC) return Promise.reject(new Error('ENETUNREACH'))
        return dialAddress({ address: '127.0.0.1', port }, handlers)
      },
    })
    await tunnel()
    expect(dialed).toEqual(['2606::1', PUBLIC])
  })

  test('closes connections and removes the socket; replaces a stale socket', async () => {
    await open(GOOD)
    const made = await tunnel()
    await proxy?.close()
    await eventually(() => made.isClosed || made.hasEnded, { what: 'the cut' })
    expect(statSync(join(folder, 'p.sock'), { throwIfNoEntry: false })).toBeUndefined()
    await Bun.write(join(folder, 'p.sock'), 'left')
    await open(GOOD)
    expect(statSync(join(folder, 'p.sock')).isSocket()).toBe(true)
  })

  test('opens no proxy for an invalid list', async () => {
    expect(open({ policy: 'allowlist', allow: ['*'] })).rejects.toThrow('Cannot use "*" in an allowlist')
  })
})
