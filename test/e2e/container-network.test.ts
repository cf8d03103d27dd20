import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, rejectionOf } from '@sandwire/testing'
import { type Box, BoxWorker } from './support/container/box.ts'
import { type Engine, findEngineProblem, startEngine } from './support/container/engine.ts'
import { buildSandboxImage, buildSidecarImage } from './support/container/images.ts'

const reason = findEngineProblem()
if (reason !== undefined) console.error(`Skipped, because ${reason}: the network of containers`)

/** Building a base image takes a minute. */
const BUILD_MS = 400_000
const CA_FILE = '/etc/cloudflare/certs/cloudflare-containers-ca.crt'

/** Programs run in the container; each prints one line. */
const programs = {
  get: (url: string, options = '{}') =>
    `const o = { signal: AbortSignal.timeout(5000), ...${options} }
     console.log(await fetch('${url}', o).then((r) => r.text(), (e) => 'refused ' + e.code))`,
  connect: (host: string, port: number) =>
    `const { connect } = await import('node:net'); const s = connect(${port}, '${host}')
     s.on('data', (d) => { console.log('received ' + d); process.exit() })
     s.on('error', (e) => { console.log('refused'); process.exit() })
     s.on('close', () => { console.log('refused'); process.exit() })
     s.on('connect', () => s.write('hello\\n'))`,
  datagram: (host: string, port: number) =>
    `const { createSocket } = await import('node:dgram'); const s = createSocket('udp4')
     s.on('error', (e) => { console.log('refused'); process.exit() })
     s.send('hello', ${port}, '${host}', (e) => { console.log(e ? 'refused' : 'sent'); s.close() })`,
}

describe.skipIf(reason !== undefined)('the network of a container', () => {
  let engine: Engine
  let worker: BoxWorker
  let closed: Box
  let open: Box
  /** Listens on the gateway address that containers see. */
  let listener: Bun.TCPSocketListener
  let ear: Bun.udp.Socket<'buffer'>
  const received: string[] = []

  beforeAll(async () => {
    engine = await startEngine()
    const images = { sandbox: await buildSandboxImage(engine), sidecar: await buildSidecarImage(engine) }
    worker = await BoxWorker.start(engine, images)
    closed = await worker.open('closed', { hasInternet: false })
    open = await worker.open('open', { hasInternet: true })
    listener = Bun.listen({
      hostname: engine.gateway,
      port: 0,
      socket: { data: (socket, bytes) => void socket.end(`you said ${bytes.toString()}`) },
    })
    ear = await Bun.udpSocket({
      hostname: engine.gateway,
      port: 0,
      socket: {
        data: (_socket, bytes, _port, address) => void received.push(`${address} ${bytes.toString()}`),
      },
    })
  }, BUILD_MS)

  afterAll(async () => {
    listener?.stop(true)
    ear?.close()
    await worker?.[Symbol.asyncDispose]()
    await engine?.[Symbol.asyncDispose]()
  })

  const evaluate = async (box: Box, code: string, user = '1000'): Promise<string> => {
    const { stdout, stderr } = await box.evaluate(user, code)
    return stdout.trim() || stderr
  }

  test('the object reaches a port inside, and gets an error when nothing listens', async () => {
    expect(await worker.call('closed', '/port?port=8080')).toContain('ok')
    expect((await rejectionOf(worker.call('closed', '/port?port=9'))).message).toContain('not listening')
  })

  test('the worker answers HTTP to an intercepted name, also when interception starts later', async () => {
    await worker.call('closed', '/catch?name=example.test&label=first')
    const answer = JSON.parse(
      await evaluate(closed, programs.get('http://example.test/a?b=c', "{ method: 'POST', body: 'words' }")),
    ) as object
    expect(answer).toEqual({ url: 'http://example.test/a?b=c', label: 'first', body: 'words' })
    await worker.call('closed', '/catch?name=*.example.test&label=second')
    expect(await evaluate(closed, programs.get('http://deep.example.test/'))).toContain('"label":"second"')
  })

  test('TLS to an intercepted name gets a certificate of the CA that workerd installs', async () => {
    await worker.call('closed', '/catch?name=secure.test&label=tls&tls')
    const trusting = `{ tls: { ca: await Bun.file('${CA_FILE}').text() } }`
    const answer = JSON.parse(
      await evaluate(closed, programs.get('https://secure.test/x', trusting)),
    ) as object
    expect(answer).toEqual({ url: 'https://secure.test/x', label: 'tls', body: '' })
    expect(await evaluate(closed, programs.get('https://secure.test/x'))).toMatch(
      /^refused .*(CERT|VERIFY|ISSUER)/,
    )
  })

  test.each(['1000', '0'])(
    'without internet, user %s reaches only intercepted names (threat T22)',
    async (user) => {
      const { port } = listener
      // A container with internet reaches it, so silence means that it was blocked.
      expect(await evaluate(open, programs.connect(engine.gateway, port), user)).toBe(
        'received you said hello',
      )
      expect(await evaluate(closed, programs.connect(engine.gateway, port), user)).toBe('refused')
      expect(await evaluate(closed, programs.get('http://other.test/'), user)).toMatch(/^refused/)
      const byAddress = programs.get(
        `http://${engine.gateway}:${port}/`,
        "{ headers: { host: 'other.test' } }",
      )
      expect(await evaluate(closed, byAddress, user)).toMatch(/^refused/)
      const asCaught = programs.get(`https://${engine.gateway}:${port}/`)
      expect(await evaluate(closed, asCaught, user)).toMatch(/^refused/)
    },
  )

  test("without internet no user's datagram leaves (threat T22)", async () => {
    received.length = 0
    await evaluate(closed, programs.datagram(engine.gateway, ear.port), '0')
    await evaluate(open, programs.datagram(engine.gateway, ear.port))
    await eventually(() => received.length > 0, {
      what: 'the datagram of the container with internet',
    })
    const address = await engine.docker(
      'inspect',
      `${open.name}-proxy`,
      '--format',
      '{{.NetworkSettings.IPAddress}}',
    )
    expect(received).toEqual([`${address.trim()} hello`])
  })

  test('no user inside can change the network rules (threat T22)', async () => {
    const body = JSON.stringify({ internet: { enabled: true } })
    const put = programs.get('http://127.0.0.1:39001/egress', `{ method: 'PUT', body: '${body}' }`)
    expect(await evaluate(closed, put, '0')).toMatch(/^refused/)
    received.length = 0
    await evaluate(closed, programs.datagram(engine.gateway, ear.port), '0')
    await evaluate(open, programs.datagram(engine.gateway, ear.port))
    await eventually(() => received.length > 0, {
      what: 'the datagram of the container with internet',
    })
    expect(received.length).toBe(1)
  })
})
