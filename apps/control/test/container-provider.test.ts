import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS, type NetworkSpec, type StartSpec } from '@sandwire/internal-api'
import { eventually, rejectionOf } from '@sandwire/testing'
import { CONTAINER_SCHEMA, ContainerStore } from '../src/providers/container/container-store.ts'
import { ContainerProvider } from '../src/providers/container/container.ts'
import { openNetwork } from '../src/providers/container/open-network.ts'
import { sqlOf } from './support/bun-sql.ts'
import { providerContract } from './support/provider-contract.ts'
import { FakeEngine } from './support/fake-engine.ts'

const ID = '0'.repeat(32)

function specOf(over: Partial<StartSpec> = {}): StartSpec {
  return {
    id: ID,
    name: 'dev',
    publicKey: 'A'.repeat(43),
    network: { policy: 'none', allow: [] },
    limits: DEFAULT_SANDBOX_LIMITS,
    env: {},
    ...over,
  }
}

interface OpenOptions {
  readonly engine?: FakeEngine
  readonly database?: Database
  readonly hasInternet?: boolean
}

function open(options: OpenOptions = {}) {
  const { engine = new FakeEngine(), database = new Database(':memory:'), hasInternet = true } = options
  const sql = sqlOf(database)
  if (sql.exec("SELECT name FROM sqlite_master WHERE name = 'container'").toArray().length === 0)
    for (const statement of CONTAINER_SCHEMA) sql.exec(statement)
  const store = new ContainerStore((query, ...bindings) => sql.exec(query, ...bindings).toArray())
  const networks: NetworkSpec[] = []
  let lost = 0
  let stuck = 0
  let nowMs = 0
  let epochs = 0
  const provider = new ContainerProvider({
    engine,
    store,
    openNetwork: async (network) => void networks.push(network),
    hasInternet,
    savesFiles: false,
    nowMs: () => nowMs,
    sleep: async (ms) => void (nowMs += ms),
    mintEpoch: () => `epoch-${(epochs += 1)}`,
    hold: (work) => void work.catch(() => undefined),
    onLost: () => void (lost += 1),
    onStuck: () => void (stuck += 1),
  })
  return { provider, engine, database, store, networks, lost: () => lost, stuck: () => stuck }
}

providerContract('container', async () => {
  const made = open()
  return {
    provider: made.provider,
    starts: () => made.engine.starts.length,
    [Symbol.asyncDispose]: async () => undefined,
  }
})

describe('the container provider', () => {
  test('starts with the key, the environment and the requested network', async () => {
    const { provider, engine, networks } = open()
    const network = { policy: 'open', allow: [] } as const
    await provider.start(specOf({ env: { A: '1' }, network, maxSessions: 7, outputBytesPerSecond: 8 }))
    expect(engine.starts).toEqual([
      {
        enableInternet: true,
        env: {
          SANDWIRE_SANDBOX: ID,
          SANDWIRE_PUBLIC_KEY: 'A'.repeat(43),
          SANDWIRE_ENV: '{"A":"1"}',
          SANDWIRE_MAX_SESSIONS: '7',
          SANDWIRE_OUTPUT_BYTES_PER_SECOND: '8',
        },
      },
    ])
    expect(networks).toEqual([{ policy: 'open', allow: [] }])
  })

  test('gives no direct internet access with the policies allowlist and none', async () => {
    for (const policy of ['none', 'allowlist'] as const) {
      const { provider, engine } = open()
      await provider.start(specOf({ network: { policy, allow: ['example.com'] } }))
      expect(engine.starts[0]?.enableInternet).toBe(false)
    }
  })

  test('gives no direct internet access where that is the network of the machine', async () => {
    const { provider, engine, networks } = open({ hasInternet: false })
    await provider.start(specOf({ env: { A: '1' }, network: { policy: 'open', allow: [] } }))
    expect(engine.starts[0]?.enableInternet).toBe(false)
    expect(networks).toEqual([{ policy: 'open', allow: [] }])
    // The certificate of the interceptor is trusted.
    expect(JSON.parse(engine.starts[0]?.env['SANDWIRE_ENV'] ?? '')).toMatchObject({
      A: '1',
      NODE_EXTRA_CA_CERTS: expect.any(String),
    })
  })

  test('waits until sandboxd listens, up to a timeout', async () => {
    const patient = open()
    patient.engine.failingPolls = 5
    expect((await patient.provider.start(specOf())).state).toBe('running')
    const deaf = open()
    deaf.engine.failingPolls = Number.POSITIVE_INFINITY
    expect(await rejectionOf(deaf.provider.start(specOf()))).toMatchObject({ code: 'sandbox_failed' })
    expect(deaf.engine.running).toBe(false)
  })

  test('reports why a container ended before sandboxd listened', async () => {
    const { provider, engine, stuck } = open()
    engine.failingPolls = Number.POSITIVE_INFINITY
    engine.endsWith = 64
    expect(await rejectionOf(provider.start(specOf()))).toMatchObject({
      code: 'sandbox_failed',
      message: 'The sandbox ended while it was starting: exit_64',
    })
    expect(await provider.status(ID)).toEqual({ id: ID, state: 'stopped', reason: 'exit_64' })
    expect(stuck()).toBe(0)
  })

  test('requests a new object when the engine does not report why a container ended', async () => {
    const { provider, engine, stuck } = open()
    engine.failingPolls = Number.POSITIVE_INFINITY
    engine.endsWith = null
    expect(await rejectionOf(provider.start(specOf()))).toMatchObject({ code: 'sandbox_failed' })
    expect(stuck()).toBe(1)
  })

  test('reports why a container ended by itself', async () => {
    const { provider, engine, lost } = open()
    await provider.start(specOf())
    engine.end(139)
    await eventually(() => lost() === 1, { what: 'the loss to be reported' })
    expect(await provider.status(ID)).toEqual({ id: ID, state: 'stopped', reason: 'exit_139' })
    expect(await provider.logs(ID, 10_000)).toContain('exit_139')
  })

  test('does not report a requested stop as a loss', async () => {
    const { provider, engine, lost } = open()
    await provider.start(specOf())
    await provider.stop(ID, 'r')
    expect(engine.signals).toEqual([15])
    expect(engine.destroys).toBe(0)
    expect(lost()).toBe(0)
  })

  test('finds its container, or that it is gone, after its object was evicted', async () => {
    const first = open()
    const before = await first.provider.start(specOf())
    const second = open(first)
    expect(await second.provider.status(ID)).toEqual(before)
    expect(await second.provider.start(specOf())).toEqual(before)
    // The runtime may have lost its interceptions.
    expect(second.networks).toEqual([{ policy: 'none', allow: [] }])
    first.engine.running = false
    const third = open(first)
    expect(await third.provider.status(ID)).toEqual({ id: ID, state: 'stopped', reason: 'lost' })
  })

  test('does not adopt a container that the engine restarted', async () => {
    const { provider, engine } = open()
    const first = await provider.start(specOf())
    const address = first.state === 'running' ? first.address : ''
    engine.end(1)
    await eventually(async () => (await provider.status(ID)).state === 'stopped', { what: 'the end' })
    engine.start({ enableInternet: false, env: {} })
    expect(await provider.status(ID)).toEqual({ id: ID, state: 'stopped', reason: 'exit_1' })
    const request = { method: 'GET', path: '/', headers: {} } as const
    expect(await rejectionOf(provider.fetch(address, request))).toMatchObject({ code: 'sandbox_unreachable' })
    const second = await provider.start(specOf())
    expect(engine.destroys).toBe(1)
    expect(second.state === 'running' && first.state === 'running' && second.epoch !== first.epoch).toBe(true)
  })

  test('renews the lifetime of the container and monitors it again', async () => {
    const { provider, engine } = open()
    await provider.renew(ID, 1_000)
    expect(engine.timeouts).toEqual([])
    await provider.start(specOf())
    await provider.renew(ID, 180_000)
    expect(engine.timeouts).toEqual([180_000])
  })

  test('ends a container whose connections must be closed, and reports the reason', async () => {
    const { provider, engine } = open()
    await provider.start(specOf())
    await provider.disconnectAll()
    expect(engine.running).toBe(false)
    expect(await provider.status(ID)).toEqual({ id: ID, state: 'stopped', reason: 'disconnect_failed' })
  })

  test('keeps a bounded log', async () => {
    const { store } = open()
    for (let line = 0; line < 1_000; line++) store.addLine(`{"line":${line}}`)
    const lines = store.lines(1_000_000).trim().split('\n')
    expect(lines).toHaveLength(200)
    expect(lines.at(-1)).toBe('{"line":999}')
    expect(store.lines(20)).toBe('{"line":999}\n')
  })
})

/** The credential gateway is reachable under every policy. */
const GATEWAY = 'http gateway.sandwire.internal'

/** The interceptions that a network policy sets up. */
async function interceptions(network: NetworkSpec, hasInternet: boolean): Promise<string[]> {
  const intercepted: string[] = []
  await openNetwork(
    {
      interceptAllOutboundHttp: async () => void intercepted.push('http'),
      interceptOutboundHttp: async (hosts) => void intercepted.push(`http ${hosts}`),
      interceptOutboundHttps: async (hosts) => void intercepted.push(`https ${hosts}`),
    },
    network,
    { hasInternet, egressFor: () => 'target' },
  )
  return intercepted
}

test('intercepts the requests of a container on every listed port', async () => {
  const allow = ['a.test', 'b.test:8443', 'c.test:8443', 'd.test:80']
  expect(await interceptions({ policy: 'allowlist', allow }, true)).toEqual([
    GATEWAY,
    'http',
    'https *',
    'http *:8443',
    'https *:8443',
  ])
  expect(await interceptions({ policy: 'none', allow }, false)).toEqual([GATEWAY])
  expect(await interceptions({ policy: 'open', allow }, true)).toEqual([GATEWAY])
  expect(await interceptions({ policy: 'open', allow }, false)).toEqual([GATEWAY, 'http', 'https *'])
})
