import { describe, expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { chooseAddresses, isBehindProxy, planServerNames } from './addresses.ts'

test('port 0 becomes one free port for every address', async () => {
  const { port, listen } = await chooseAddresses(['127.0.0.1', '::1'], 0)
  expect(port).toBeGreaterThan(0)
  expect(listen[0]).toBe(`127.0.0.1:${port}`)
  for (const address of listen) expect(address).toEndWith(`:${port}`)
})

test('names a port that is in use', async () => {
  using server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } })
  expect((await rejectionOf(chooseAddresses(['127.0.0.1'], server.port)))?.message).toBe(
    `Cannot listen on 127.0.0.1:${server.port}: the port is in use\nhint: choose another port with --port, or 0 for a free one`,
  )
})

test('skips addresses that the machine does not have, unless it is the only one', async () => {
  const { listen } = await chooseAddresses(['203.0.113.7', '127.0.0.1'], 0)
  expect(listen).toHaveLength(1)
  expect((await rejectionOf(chooseAddresses(['203.0.113.7'], 0)))?.message).toContain(
    'no address 203.0.113.7',
  )
})

const address = { port: 8787, pageName: 'sandwire-0123456789abcdef0123' }
/** Derived from the other. */
const GUESTS = 'sandwire-815b4fdc5c1dd50d4b44.localhost:8787'
const PAGE = 'sandwire-0123456789abcdef0123.localhost:8787'

describe('planServerNames', () => {
  test('gives local mode a random host name for signing in', () => {
    const names = planServerNames({ mode: 'local' }, address)
    expect(names.url).toBe('http://localhost:8787')
    expect(names.pageUrl).toBe(`http://${PAGE}`)
    expect(names.hosts).toEqual(['localhost:8787', '127.0.0.1:8787', '[::1]:8787', PAGE, GUESTS])
    expect(names.origins[0]).toBe('http://localhost:8787')
    expect(names.origins.slice(-2)).toEqual([`http://${PAGE}`, `http://${GUESTS}`])
    expect(names.privateOrigins).toEqual({ owner: `http://${PAGE}`, guests: `http://${GUESTS}` })
  })

  test('uses only the configured name', () => {
    const names = planServerNames({ mode: 'local', publicOrigin: 'http://localhost:8787' }, address)
    expect(names.pageUrl).toBe('http://localhost:8787')
    expect(names.privateOrigins).toBeUndefined()
    expect(names.hosts).not.toContain(PAGE)
  })

  test('uses no random name in open mode', () => {
    const names = planServerNames({ mode: 'open', publicOrigin: 'https://sandwire.example' }, address)
    expect(names.pageUrl).toBe('https://sandwire.example')
    expect(names.privateOrigins).toBeUndefined()
    expect(names.origins).toEqual(['https://sandwire.example'])
    expect(names.hosts).not.toContain(PAGE)
  })
})

test.each([
  [undefined, false, false],
  ['https://sandwire.example', false, true],
  ['https://sandwire.example', true, true],
  ['https://sandwire.example:8787', true, false],
  ['http://localhost:8787', false, false],
  ['http://localhost:9000', false, true],
] as const)('isBehindProxy of %s, with TLS %s: %s', (publicOrigin, hasTls, expected) => {
  const tls = { certificateChain: '', privateKey: '' }
  const settings = { ...(publicOrigin !== undefined && { publicOrigin }), ...(hasTls && { tls }) }
  expect(isBehindProxy(settings, 8787)).toBe(expected)
})
