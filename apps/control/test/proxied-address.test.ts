import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { withoutProxyHeaders } from '../src/http/client-address.ts'
import { fromAddress, SPOOFS } from './support/addresses.ts'
import { type RunningControl, startControl } from './support/control.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'
import { fieldOf } from './support/json.ts'

const HEADER = 'x-forwarded-for'
let sandboxes: FakeSandboxes
let behind: RunningControl
let bare: RunningControl
beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  behind = await startControl({ runner: sandboxes, config: { clientAddressHeader: HEADER } })
  bare = await startControl({ runner: sandboxes })
})
afterAll(async () => {
  await behind[Symbol.asyncDispose]()
  await bare[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

let made = 0
/** The audited address of a request with these headers, sent from loopback like those of a local proxy. */
async function addressOf(
  control: RunningControl,
  said: Readonly<Record<string, string>>,
  peer = '127.0.0.1',
): Promise<string> {
  made += 1
  const headers = { ...said, ...fromAddress(peer) }
  const name = `seen-${made}`
  const response = await control.fetch('/api/sandboxes', {
    method: 'POST',
    headers,
    json: { name, start: false },
  })
  expect(response.status).toBe(201)
  const row = await eventually(
    async () => {
      const page: unknown = await (await control.fetch('/api/audit?action=sandbox.create')).json()
      const rows: unknown = fieldOf(page, 'rows')
      return Array.isArray(rows)
        ? rows.find((each: unknown) => fieldOf(each, 'sandboxName') === name)
        : undefined
    },
    // Reading the audit log counts against the account's limit.
    { what: 'the audit', intervalMs: 100 },
  )
  return String(fieldOf(row, 'address'))
}

describe('the address of a client (threat T50)', () => {
  test('is the last address added by a proxy on this machine', async () => {
    expect(await addressOf(behind, { [HEADER]: '203.0.113.9' })).toBe('203.0.113.9')
    expect(await addressOf(behind, { [HEADER]: '198.51.100.1, 203.0.113.9' })).toBe('203.0.113.9')
    expect(await addressOf(behind, { [HEADER]: '2001:db8::7' })).toBe('2001:db8::7')
  })

  test('is the peer address when the header is invalid or missing', async () => {
    for (const list of ['junk', '203.0.113.9, junk', '203.0.113.9,', '203.0.113.9:80'])
      expect(await addressOf(behind, { [HEADER]: list })).toBe('127.0.0.1')
    expect(await addressOf(behind, {})).toBe('127.0.0.1')
  })

  test('is not read from any other header', async () => {
    const others = SPOOFS.filter((name) => name !== HEADER).map((name) => [name, '203.0.113.9'] as const)
    expect(await addressOf(behind, Object.fromEntries(others))).toBe('127.0.0.1')
  })

  test('is not read from any header without a configured proxy', async () => {
    const all = SPOOFS.map((name) => [name, '203.0.113.9'] as const)
    expect(await addressOf(bare, Object.fromEntries(all))).toBe('127.0.0.1')
  })

  test('is read from a header only for peers on this machine', async () => {
    expect(await addressOf(behind, { [HEADER]: '203.0.113.9' }, '198.51.100.7')).toBe('198.51.100.7')
  })

  test('is in no header that routes can read without a configured proxy', () => {
    const headers = { [HEADER]: '203.0.113.9', forwarded: 'for=203.0.113.9', 'x-kept': '1' }
    const request = new Request('http://h/', { method: 'POST', body: 'b', headers })
    const names = [...withoutProxyHeaders(request).headers.keys()]
    expect(names).toContain('x-kept')
    expect(names).not.toContain(HEADER)
    expect(names).not.toContain('forwarded')
  })

  test('is reported as unused, once, when a proxy on this machine sends it in an unknown header', async () => {
    const reported = (control: RunningControl): number =>
      control.log.filter((line) => line.includes('"proxy_header_not_configured"')).length
    await using fresh = await startControl({ runner: sandboxes })
    await fresh.fetch('/healthz', { headers: { [HEADER]: '203.0.113.9', ...fromAddress('198.51.100.7') } })
    await fresh.fetch('/healthz')
    expect(reported(fresh)).toBe(0)
    for (const name of [HEADER, 'forwarded'])
      await fresh.fetch('/healthz', { headers: { [name]: '203.0.113.9', ...fromAddress('127.0.0.1') } })
    await eventually(() => reported(fresh) > 0, { what: 'the log' })
    expect([reported(fresh), reported(behind)]).toEqual([1, 0])
  })
})
