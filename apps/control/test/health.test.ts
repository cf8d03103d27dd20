import { expect, test } from 'bun:test'
import { OpenAPIHono } from '@hono/zod-openapi'
import { NO_CEILING_SETTINGS } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import { resolveCeilings } from '../src/ceilings/ceilings.ts'
import { decodeConfig } from '../src/config.ts'
import { Metrics } from '../src/metrics.ts'
import { cacheHealth, FRESH_MS, MAX_AGE_MS } from '../src/providers/health-cache.ts'
import { Breaker, Breakers, FAILURES_TO_OPEN, OPEN_MS } from '../src/providers/breaker.ts'
import type { AppEnv } from '../src/routes/context.ts'
import { addHealthRoutes } from '../src/routes/health.ts'

const CONFIG = decodeConfig(
  JSON.stringify({
    mode: 'local',
    publicOrigins: ['http://localhost:1'],
    hosts: ['localhost:1'],
    sleepAfterMs: 60_000,
    alarmMs: 1_000,
    maxSandboxes: 1,
    provider: 'host',
    workspaceMode: 'sandboxes',
  }),
)

const USAGE = {
  ceilings: resolveCeilings(NO_CEILING_SETTINGS, {
    isShared: false,
    filesSurviveStop: true,
    maxSandboxes: 1,
    idleSeconds: 60,
  }),
  machineUsage: () => Promise.resolve({ accounts: 1, running: 2 }),
  hasClaude: () => false,
}

test('/metrics counts why the server was not ready', async () => {
  const metrics = new Metrics()
  const app = new OpenAPIHono<AppEnv>()
  const disk = { status: 'full', freeBytes: 1, reserveBytes: 2 } as const
  const healthy = { status: 'ok', version: '0', isolation: 'none', sandboxes: 0 } as const
  let nowMs = 0
  const answers = [
    () => Promise.reject(new SandwireError('provider_unavailable', 'The host does not respond')),
    () => Promise.resolve({ ...healthy, disk }),
    () => Promise.resolve(healthy),
  ]
  addHealthRoutes(app, () => (_, next) => next(), {
    config: CONFIG,
    provider: { health: () => (answers.shift() ?? answers[0] ?? (() => Promise.resolve(healthy)))() },
    breaker: new Breaker(),
    workspaceBreakers: new Breakers(),
    metrics,
    sandboxdMetrics: { collect: () => undefined },
    versionMetrics: { collect: () => undefined },
    nowMs: () => nowMs,
    ...USAGE,
  })
  const check = async (): Promise<string> => {
    nowMs += FRESH_MS
    return (await app.request('/metrics')).text()
  }
  const failures = 'sandwire_readiness_failures_total'
  expect(await check()).toContain(`${failures}{dependency="provider",reason="provider_unavailable"} 1\n`)
  const second = await check()
  expect(second).toContain(`${failures}{dependency="disk",reason="full"} 1\n`)
  expect(second).toContain('sandwire_ready 0\n')
  expect(await check()).toContain('sandwire_ready 1\n')
})

test('/readyz reports a breaker that tries one call as half-open', async () => {
  const breaker = new Breaker()
  for (let count = 0; count < FAILURES_TO_OPEN; count += 1) breaker.failed(0)
  const app = new OpenAPIHono<AppEnv>()
  addHealthRoutes(app, () => (_, next) => next(), {
    config: CONFIG,
    provider: {
      health: () => Promise.resolve({ status: 'ok', version: '0', isolation: 'none', sandboxes: 0 } as const),
    },
    breaker,
    workspaceBreakers: new Breakers(),
    metrics: new Metrics(),
    sandboxdMetrics: { collect: () => undefined },
    versionMetrics: { collect: () => undefined },
    nowMs: () => OPEN_MS,
    ...USAGE,
  })
  const readiness = async (): Promise<unknown> => (await app.request('/readyz')).json()
  expect(await readiness()).toMatchObject({ dependencies: { provider: { breaker: 'open' } } })
  breaker.admit(OPEN_MS)
  expect(await readiness()).toMatchObject({ dependencies: { provider: { breaker: 'half-open' } } })
  breaker.succeeded()
  expect(await readiness()).toMatchObject({ dependencies: { provider: { breaker: 'closed' } } })
  expect(await (await app.request('/metrics')).text()).toContain('sandwire_breaker_open 0\n')
  expect(await (await app.request('/metrics')).text()).toContain('sandwire_usage{resource="running"} 2\n')
})

test.each([
  ['ok', 200, 'ok'],
  ['low', 503, 'unavailable'],
  ['full', 503, 'unavailable'],
] as const)('/readyz and metrics report a data disk that is %s', async (disk, code, status) => {
  const app = new OpenAPIHono<AppEnv>()
  const health = { status: 'ok', version: '0', isolation: 'none', sandboxes: 0 } as const
  addHealthRoutes(app, () => (_, next) => next(), {
    config: CONFIG,
    provider: {
      health: () => Promise.resolve({ ...health, disk: { status: disk, freeBytes: 5, reserveBytes: 7 } }),
    },
    breaker: new Breaker(),
    workspaceBreakers: new Breakers(),
    metrics: new Metrics(),
    sandboxdMetrics: { collect: () => undefined },
    versionMetrics: { collect: () => undefined },
    nowMs: () => 0,
    ...USAGE,
  })
  const metrics = await (await app.request('/metrics')).text()
  expect(metrics).toContain(`sandwire_ready ${disk === 'ok' ? 1 : 0}\n`)
  expect(metrics).toContain('sandwire_disk_free_bytes 5\n')
  expect(metrics).toContain('sandwire_disk_reserve_bytes 7\n')
  const response = await app.request('/readyz')
  expect([response.status, await response.json()]).toMatchObject([
    code,
    { status, dependencies: { provider: { status: 'ok' }, disk: { status: disk } } },
  ])
})

test('however many requests there are, one at a time asks the provider for its health', async () => {
  let nowMs = 0
  const calls: PromiseWithResolvers<void>[] = []
  const read = cacheHealth(
    {
      health: async () => {
        const call = Promise.withResolvers<void>()
        calls.push(call)
        await call.promise
        return { status: 'ok', version: '0', isolation: 'none', sandboxes: 0 } as const
      },
    },
    () => nowMs,
  )
  const first = read('r')
  calls[0]?.resolve()
  expect(await first).toMatchObject({ status: 'ok' })
  for (let count = 0; count < 100; count += 1) await read('r')
  expect(calls).toHaveLength(1)

  nowMs = FRESH_MS
  const refresh = read('r')
  for (let count = 0; count < 100; count += 1) expect(await read('r')).toMatchObject({ status: 'ok' })
  expect(calls).toHaveLength(2)
  calls[1]?.reject(new Error('The host is gone'))
  expect(await refresh).toMatchObject({ status: 'unavailable', code: 'internal' })
  expect(await read('r')).toMatchObject({ status: 'unavailable' })

  // A refresh whose request was canceled never ends.
  nowMs += FRESH_MS
  void read('r')
  expect(await read('r')).toMatchObject({ status: 'unavailable' })
  nowMs += MAX_AGE_MS
  const next = read('r')
  calls.at(-1)?.resolve()
  expect(await next).toMatchObject({ status: 'ok' })
})
