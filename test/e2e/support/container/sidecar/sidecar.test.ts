import { expect, test } from 'bun:test'
import { connect, createServer } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { readOpening } from './client-hello.ts'
import { writeRules } from './firewall.ts'
import { answerQuestion, matchesName } from './name-server.ts'

/** The first bytes that a real TLS client sends. */
async function sayHello(servername: string): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  const server = createServer((socket) => void socket.once('data', (bytes: Buffer) => resolve(bytes)))
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening))
  const address = server.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  const client = connectTls({ socket: connect(port, '127.0.0.1'), servername, rejectUnauthorized: false })
  client.on('error', () => undefined)
  const bytes = await promise
  client.destroy()
  server.close()
  return bytes
}

test('reads the name in a ClientHello as soon as it is complete', async () => {
  const hello = await sayHello('deep.example.test')
  expect(readOpening(hello)).toEqual({ kind: 'tls', serverName: 'deep.example.test' })
  for (let length = 0; length < hello.length; length++)
    expect(readOpening(hello.subarray(0, length))).toEqual({ kind: 'partial' })
})

test('reads the host of a request when its head is complete, and none of other protocols', () => {
  const request = 'GET / HTTP/1.1\r\nUser-Agent: x\r\nhOST:  a.test:8080 \r\n\r\n'
  expect(readOpening(Buffer.from(request))).toEqual({ kind: 'http', host: 'a.test:8080' })
  expect(readOpening(Buffer.from(request.slice(0, -2)))).toEqual({ kind: 'partial' })
  // A client may send its body with the head.
  const withBody = Buffer.concat([Buffer.from(request), Buffer.alloc(100_000)])
  expect(readOpening(withBody)).toEqual({ kind: 'http', host: 'a.test:8080' })
  expect(readOpening(Buffer.from('SSH-2.0-client\r\n'))).toEqual({ kind: 'other' })
})

test('patterns match whole names', () => {
  expect(matchesName(['*.a.test', 'b.test'], 'x.a.test')).toBe(true)
  expect(matchesName(['*.a.test', 'b.test'], 'B.test')).toBe(true)
  expect(matchesName(['*.a.test', 'b.test'], 'bxtest')).toBe(false)
  expect(matchesName(['*.a.test', 'b.test'], 'b.test.evil')).toBe(false)
})

test('an intercepted name has an address, others do not exist', () => {
  const question = Buffer.from('12340100000100000000000001610474657374000001 0001'.replace(' ', ''), 'hex')
  const known = answerQuestion(question, (name) => name === 'a.test')
  expect(known?.readUInt16BE(2)).toBe(0x81_80)
  expect([...(known?.subarray(-4) ?? [])]).toEqual([11, 0, 0, 1])
  expect(answerQuestion(question, () => false)?.readUInt16BE(2)).toBe(0x81_83)
  expect(answerQuestion(question.subarray(0, 15), () => true)).toBeUndefined()
})

test('rules allow loopback, replies and workerd, and the rest only with internet', () => {
  const plan = { gateway: '172.17.0.1', egressPort: 5000, catchPort: 1, namesPort: 2 }
  const closed = writeRules({ ...plan, hasInternet: false })
  expect(closed).toContain(':OUTPUT DROP')
  expect(closed).not.toContain('! -p tcp -j ACCEPT')
  expect(writeRules({ ...plan, hasInternet: true })).toContain('! -p tcp -j ACCEPT')
})
