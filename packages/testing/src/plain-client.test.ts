import { createHash } from 'node:crypto'
import { expect, test } from 'bun:test'
import { eventually } from './eventually.ts'
import { patternAt } from './pattern.ts'
import { connectPlain, UpgradeRefused } from './plain-client.ts'
import { openPlainServer } from './plain-server.fixture.ts'
import { rejectionOf } from './rejection.ts'

const headers = { authorization: 'Bearer good' }

test('connectPlain separates stdout, stderr and control messages', async () => {
  await using server = openPlainServer()
  await using client = await connectPlain(server.url, { headers })
  await client.sendInput('hello')
  await client.sendControl({ type: 'resize', cols: 80, rows: 24 })
  await client.sendEof()
  expect(await client.closed).toEqual({ code: 1000, reason: '' })
  expect(client.stdout.text).toBe('hello')
  expect(client.stderr.text).toBe('got resize\ngot eof\n')
  expect(client.exit).toEqual({ type: 'exit', code: 5 })
  expect(client).toMatchObject({ outputAtExit: 24, violations: [], subprotocol: '', extensions: '' })
})

test('connectPlain rejects with the status and body of a refusal', async () => {
  await using server = openPlainServer()
  const refusal: unknown = await connectPlain(server.url).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(UpgradeRefused)
  expect(refusal).toMatchObject({ status: 401, body: 'who are you' })
})

test('connectPlain rejects when nothing listens', async () => {
  await using server = openPlainServer()
  await server[Symbol.asyncDispose]()
  await rejectionOf(connectPlain(server.url, { headers }))
})

test('PlainClient hashes output without storing it in digest mode', async () => {
  await using server = openPlainServer()
  await using client = await connectPlain(server.url, { headers, output: 'digest' })
  const input = patternAt(1, 0, 3_000_000)
  await client.sendInput(input)
  await client.sendEof()
  await client.closed
  expect(client.stdout.length).toBe(input.length)
  expect(client.stdout.sha256).toBe(createHash('sha256').update(input).digest('hex'))
  expect(() => client.stdout.bytes).toThrow('only hashed')
})

test('PlainClient stalls the server while it is paused, and gets every byte afterwards', async () => {
  await using server = openPlainServer()
  await using client = await connectPlain(server.url, { headers, output: 'digest' })
  client.pause()
  await client.sendControl({ type: 'flood', bytes: 32 << 20 })
  await eventually(() => server.backpressure() > 0, { what: 'the server to feel back-pressure' })
  expect(client.stdout.length).toBe(0)
  client.resume()
  await eventually(() => client.stdout.length === 32 << 20, { what: 'the flood' })
})

test('PlainClient records protocol violations', async () => {
  await using server = openPlainServer()
  await using client = await connectPlain(server.url, { headers })
  await client.sendControl({ type: 'misbehave' })
  await eventually(() => client.violations.length === 3, { what: 'three violations' })
  expect(client.violations).toEqual([
    'binary message of stream "9"',
    'binary message of stream "undefined"',
    'text message "not json"',
  ])
})

test('PlainClient reports close code 1006 when the connection drops', async () => {
  await using server = openPlainServer()
  await using client = await connectPlain(server.url, { headers })
  await client.sendControl({ type: 'drop' })
  expect(await client.closed).toMatchObject({ code: 1006 })
})
