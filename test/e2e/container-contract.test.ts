import { afterAll, beforeAll, describe } from 'bun:test'
import { resolve } from 'node:path'
import { exportPublicKey, type StartSpec } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { Miniflare } from 'miniflare'
import type { Provider } from '../../apps/control/src/providers/provider.ts'
import {
  providerContract,
  type ProviderUnderTest,
} from '../../apps/control/test/support/provider-contract.ts'
import { findWorkerd } from '../../apps/host/src/control/workerd.ts'
import { type Containers, CONTAINERS_READY_MS, openContainers } from './support/container/containers.ts'
import { findEngineProblem } from './support/container/engine.ts'

const reason = findEngineProblem()
if (reason !== undefined)
  console.error(`Skipped, because ${reason}: the contract of providers with containers`)

async function bundle(): Promise<string> {
  const built = await Bun.build({
    entrypoints: [resolve(import.meta.dir, '../../apps/control/test/support/container-provider.worker.mjs')],
    target: 'browser',
    format: 'esm',
    external: ['cloudflare:*', 'node:*'],
  })
  return built.outputs[0]?.text() ?? ''
}

describe.skipIf(reason !== undefined)('with real containers', () => {
  let containers: Containers
  let miniflare: Miniflare
  let publicKey: string

  beforeAll(async () => {
    containers = await openContainers()
    const keys = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
    publicKey = await exportPublicKey(keys.publicKey)
    process.env['MINIFLARE_WORKERD_PATH'] = findWorkerd()
    miniflare = new Miniflare({
      modules: [{ type: 'ESModule', path: 'index.js', contents: await bundle() }],
      name: containers.name,
      modulesRoot: '/',
      compatibilityDate: '2026-07-01',
      durableObjects: {
        HELD: { className: 'Held', useSQLite: true, container: { imageName: containers.image } },
      },
      containerEngine: {
        localDocker: {
          socketPath: containers.engine.host,
          containerEgressInterceptorImage: containers.egressImage,
        },
      },
    })
    await miniflare.ready
  }, CONTAINERS_READY_MS)

  afterAll(async () => {
    await miniflare?.dispose()
    await containers?.[Symbol.asyncDispose]()
  })

  providerContract('container', async (): Promise<ProviderUnderTest> => {
    const url = new URL(await miniflare.ready)
    url.searchParams.set('name', crypto.randomUUID())
    const ask = async <T>(call: string, ...args: unknown[]): Promise<T> => {
      const response = await fetch(url, { method: 'POST', body: JSON.stringify({ call, args }) })
      const { value, error } = (await response.json()) as {
        value: T
        error?: { code: 'internal'; message: string }
      }
      if (error !== undefined) throw new SandwireError(error.code, error.message)
      return value
    }
    let starts = 0
    const count = async <T>(work: Promise<T>): Promise<T> => {
      const value = await work
      starts = await ask<number>('starts')
      return value
    }
    const provider: Provider = {
      deliversStopReason: false,
      survives: { detach: 'processes', stop: 'nothing', upgrade: 'processes' },
      start: (spec: StartSpec) => count(ask('start', { ...spec, publicKey })),
      status: (id) => ask('status', id),
      stop: (id) => ask('stop', id),
      destroy: (id) => ask('destroy', id),
      disconnectAll: (id) => ask('disconnectAll', id),
      renew: (id, forMs) => ask('renew', id, forMs),
      logs: (id, maxBytes) => ask('logs', id, maxBytes),
      health: () => ask('health'),
      fetch: async (address, request) =>
        new Response(null, { status: await ask<number>('fetch', address, request) }),
    }
    return {
      provider,
      starts: () => starts,
      [Symbol.asyncDispose]: () => ask('destroy', '0'.repeat(32)),
    }
  })
})
