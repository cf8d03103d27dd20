import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { probeServer, withPlainHttpCheck } from './probe-server.ts'

const LOST = new Error('lost')
const fails = (): Promise<never> => Promise.reject(LOST)

/** A server that answers at these addresses. */
const answersAt =
  (...origins: string[]) =>
  (url: string): Promise<boolean> =>
    Promise.resolve(origins.includes(url))

test('reports the plain HTTP address for an https address without TLS', async () => {
  const probe = answersAt('http://localhost:1')
  for (const [address, instead] of [
    ['https://localhost:1', 'http://localhost:1'],
    ['https://localhost:1/attach?x=1', 'http://localhost:1/attach?x=1'],
    ['wss://localhost:1/attach', 'ws://localhost:1/attach'],
  ] as const)
    expect(await rejectionOf(withPlainHttpCheck(address, fails, { probe }))).toMatchObject({
      hint: `try ${instead}`,
    })
})

test('warns that a remote plain HTTP address is not encrypted', async () => {
  const probe = answersAt('http://far.example')
  expect(await rejectionOf(withPlainHttpCheck('https://far.example', fails, { probe }))).toMatchObject({
    hint: 'try http://far.example, which is not encrypted',
  })
})

test('does not change other errors', async () => {
  const both = answersAt('http://localhost:1', 'https://localhost:1')
  expect(await rejectionOf(withPlainHttpCheck('https://localhost:1', fails, { probe: both }))).toBe(LOST)
  expect(await rejectionOf(withPlainHttpCheck('https://localhost:1', fails, { probe: answersAt() }))).toBe(
    LOST,
  )
  expect(await rejectionOf(withPlainHttpCheck('http://localhost:1', fails, { probe: both }))).toBe(LOST)
  const isSettled = (): boolean => true
  const probe = answersAt('http://localhost:1')
  expect(await rejectionOf(withPlainHttpCheck('https://localhost:1', fails, { probe, isSettled }))).toBe(LOST)
})

test.each([
  ['a Sandwire server', true, () => Response.json({ status: 'ok', version: '0' })],
  ['something else', false, () => new Response('hello')],
  ['other JSON', false, () => Response.json(['ok'])],
  ['a server that is broken', false, () => Response.json({ status: 'ok' }, { status: 500 })],
  ['a redirect', false, () => Response.redirect('http://localhost:1/')],
] as const)('probeServer recognizes %s: %p', async (_, expected, respond) => {
  const seen: [string, string | null][] = []
  using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url, headers }) => {
      seen.push([new URL(url).pathname, headers.get('authorization')])
      return respond()
    },
  })
  expect(await probeServer(`http://127.0.0.1:${server.port}/attach`)).toBe(expected)
  expect(seen).toEqual([['/healthz', null]])
})

test('probeServer is false when nothing is listening', async () => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  const { url } = server
  await server.stop(true)
  expect(await probeServer(url.href)).toBe(false)
  expect(await probeServer('not an address')).toBe(false)
})
