import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DEFAULT_SANDBOX_LIMITS, type StartSpec } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { rejectionOf } from '@sandwire/testing'
import { Breaker, FAILURES_TO_OPEN, OPEN_MS } from '../src/providers/breaker.ts'
import { HostProvider } from '../src/providers/host.ts'
import { MemoryProvider } from './support/memory-provider.ts'
import { providerContract } from './support/provider-contract.ts'
import { FakeHost } from './support/fake-host.ts'
import { fieldOf } from './support/json.ts'

const ID = '0'.repeat(32)

const SPEC: StartSpec = {
  id: ID,
  name: 'dev',
  publicKey: 'A'.repeat(43),
  env: {},
  network: {
    policy: 'none',
    allow: [],
  },
  limits: DEFAULT_SANDBOX_LIMITS,
}

/** A host whose sandboxes send empty responses, unless a test intercepts them. */
async function openHost(answer: (request: Request) => Response | Promise<Response> = () => new Response('')) {
  const folder = mkdtempSync(path.join(tmpdir(), 'sandwire-provider-'))
  const servers = new Map<string, ReturnType<typeof Bun.serve>>()
  let starts = 0
  const host = new FakeHost(path.join(folder, 'host.sock'), {
    async start({ id }) {
      starts += 1
      const socket = path.join(folder, `${starts}.sock`)
      servers.set(id, Bun.serve({ unix: socket, fetch: answer }))
      return socket
    },
    async stop(id) {
      await servers.get(id)?.stop(true)
    },
  })
  const breaker = new Breaker()
  const waits: number[] = []
  let nowMs = 0
  const provider = new HostProvider({
    fetchHost: (url, init) => fetch(url, { ...init, unix: host.socket }),
    findSlot: (slot) => {
      const unix = host.slots[slot]
      return unix === undefined ? undefined : { fetch: (url, init) => fetch(url, { ...init, unix }) }
    },
    breaker,
    nowMs: () => nowMs,
    sleep: async (ms) => void waits.push(ms),
    random: () => 0.5,
  })
  return {
    provider,
    host,
    breaker,
    waits,
    starts: () => starts,
    pass: (ms: number) => void (nowMs += ms),
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]()
      for (const server of servers.values()) await server.stop(true)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

providerContract('host', () => openHost())
providerContract('in memory', async () => {
  const provider = new MemoryProvider()
  return { provider, starts: () => provider.starts, [Symbol.asyncDispose]: async () => undefined }
})

describe('the host provider', () => {
  test('retries when the host did not respond, and passes the request id on', async () => {
    await using made = await openHost()
    let failures = 2
    made.host.intercept = () => (failures-- > 0 ? new Response('broken', { status: 500 }) : undefined)
    expect(await made.provider.status(ID, 'request-1')).toEqual({ id: ID, state: 'absent' })
    expect(made.waits).toHaveLength(2)
    expect(new Set(made.host.requestIds)).toEqual(new Set(['request-1']))
  })

  test('does not retry a call that got a response', async () => {
    await using made = await openHost()
    made.host.intercept = () =>
      Response.json({ error: { code: 'sandbox_failed', message: 'RAW', request_id: 'x' } }, { status: 502 })
    const error = await rejectionOf(made.provider.status(ID, 'r'))
    expect(error).toMatchObject({ code: 'sandbox_failed' })
    expect(made.host.calls).toHaveLength(1)
  })

  test('(threat T46) passes on no error text of the host', async () => {
    await using made = await openHost()
    for (const answer of [
      () => new Response('RAW stack', { status: 500 }),
      () => Response.json({ error: { code: 'unheard_of', message: 'RAW' } }, { status: 400 }),
      () => Response.json({ error: { code: 'bad_request', message: 'RAW', extra: 1 } }, { status: 400 }),
      () => Response.json({ error: { code: 'bad_request', message: 'RAW' } }, { status: 400 }),
      () =>
        Response.json({ error: { code: 'x', message: 'RAW', start_failure: 'RAW /etc' } }, { status: 502 }),
      () =>
        Response.json({ id: ID, state: 'running', address: 'http://evil.example', epoch: 'x', startedMs: 1 }),
      () => Response.json({ id: '1'.repeat(32), state: 'absent' }),
      () => new Response('x'.repeat(100_000)),
      () => new Response(null, { status: 302, headers: { location: 'http://host/sandboxes/x' } }),
    ]) {
      made.host.intercept = answer
      made.breaker.succeeded()
      const error = await rejectionOf(made.provider.status(ID, 'r'))
      expect(error?.message).not.toContain('RAW')
      expect(['provider_unavailable', 'sandbox_failed', 'bad_request']).toContain(
        String(fieldOf(error ?? {}, 'code')),
      )
    }
  })

  test('stays available when a call fails for one sandbox', async () => {
    await using made = await openHost()
    for (const code of ['internal', 'not_found', 'a_code_of_later'])
      for (let calls = 0; calls < 2 * FAILURES_TO_OPEN; calls++) {
        const status = code === 'internal' ? 500 : 404
        made.host.intercept = () => Response.json({ error: { code, message: 'RAW' } }, { status })
        const requested = made.host.calls.length
        const error = await rejectionOf(made.provider.destroy(ID, 'r'))
        expect(error).toMatchObject({ code: 'sandbox_failed' })
        expect(error?.message).not.toContain('RAW')
        expect(made.host.calls).toHaveLength(requested + 1)
      }
    expect(made.breaker.state).toEqual({ kind: 'closed', failures: 0 })
  })

  test('streams a body to sandboxd, follows no redirect and aborts on request', async () => {
    await using made = await openHost((request) => {
      const { pathname } = new URL(request.url)
      if (pathname === '/moved') return new Response(null, { status: 302, headers: { location: '/x' } })
      return pathname === '/hangs' ? new Promise<Response>(() => undefined) : new Response(request.body)
    })
    const status = await made.provider.start(SPEC, 'r')
    const address = status.state === 'running' ? status.address : ''
    const body = new Blob(['hello']).stream()
    const echo = await made.provider.fetch(address, { method: 'PUT', path: '/echo', headers: {}, body })
    expect(await echo.text()).toBe('hello')
    const moved = await made.provider.fetch(address, { method: 'GET', path: '/moved', headers: {} })
    expect(moved.status).toBe(302)
    const stopping = new AbortController()
    const request = { method: 'GET', path: '/hangs', headers: {}, signal: stopping.signal } as const
    const hanging = rejectionOf(made.provider.fetch(address, request))
    stopping.abort(new SandwireError('timed_out', 'late'))
    expect(await hanging).toMatchObject({ code: 'timed_out' })
  })

  test('is unavailable when its responses are malformed', async () => {
    await using made = await openHost()
    made.host.intercept = () => Response.json({ what: 'is this' })
    for (let failures = 0; failures < FAILURES_TO_OPEN; failures += 3)
      await rejectionOf(made.provider.status(ID, 'r'))
    expect(made.breaker.state.kind).toBe('open')
  })

  test('stops calling an unavailable host and retries later', async () => {
    await using made = await openHost()
    made.host.intercept = () => new Response('broken', { status: 500 })
    for (let failures = 0; failures < FAILURES_TO_OPEN; failures += 3)
      await rejectionOf(made.provider.status(ID, 'r'))
    expect(made.breaker.state.kind).toBe('open')
    const requested = made.host.calls.length
    expect(await rejectionOf(made.provider.status(ID, 'r'))).toMatchObject({ code: 'provider_unavailable' })
    expect(made.host.calls).toHaveLength(requested)
    made.host.intercept = undefined
    made.pass(OPEN_MS)
    expect((await made.provider.status(ID, 'r')).state).toBe('absent')
    expect(made.breaker.state.kind).toBe('closed')
  })
})
