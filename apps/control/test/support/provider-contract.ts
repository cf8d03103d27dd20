import { describe, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS, type StartSpec } from '@sandwire/internal-api'
import type { Provider } from '../../src/providers/provider.ts'

/** The provider to test. */
export interface ProviderUnderTest extends AsyncDisposable {
  readonly provider: Provider
  /** Number of actual starts. */
  readonly starts: () => number
}

const ID = '0'.repeat(32)
const spec: StartSpec = {
  id: ID,
  name: 'dev',
  publicKey: 'A'.repeat(43),
  network: { policy: 'none', allow: [] },
  limits: DEFAULT_SANDBOX_LIMITS,
  env: {},
}

/** The tests that every provider must pass. */
export function providerContract(name: string, open: () => Promise<ProviderUnderTest>): void {
  describe(`the provider ${name}`, () => {
    test('reports a sandbox that was never started as stopped', async () => {
      await using made = await open()
      expect(await made.provider.status(ID, 'r')).toEqual({ id: ID, state: 'absent' })
    })

    test('starts a sandbox once for concurrent requests', async () => {
      await using made = await open()
      const all = await Promise.all(Array.from({ length: 5 }, () => made.provider.start(spec, 'r')))
      expect(all.every((status) => status.state === 'running')).toBe(true)
      expect(new Set(all.map((status) => JSON.stringify(status))).size).toBe(1)
      expect(await made.provider.start(spec, 'r')).toEqual(await made.provider.status(ID, 'r'))
      expect(made.starts()).toBe(1)
    })

    test('gives every start a new epoch', async () => {
      await using made = await open()
      const first = await made.provider.start(spec, 'r')
      await made.provider.stop(ID, 'r')
      const second = await made.provider.start(spec, 'r')
      expect(first.state === 'running' && second.state === 'running' && first.epoch !== second.epoch).toBe(
        true,
      )
    })

    test('stops and destroys idempotently', async () => {
      await using made = await open()
      expect((await made.provider.stop(ID, 'r')).state).not.toBe('running')
      await made.provider.start(spec, 'r')
      expect(await made.provider.stop(ID, 'r')).toEqual({ id: ID, state: 'stopped' })
      expect(await made.provider.stop(ID, 'r')).toEqual({ id: ID, state: 'stopped' })
      await made.provider.destroy(ID, 'r')
      await made.provider.destroy(ID, 'r')
      expect(await made.provider.status(ID, 'r')).toEqual({ id: ID, state: 'absent' })
    })

    test('reaches sandboxd while the sandbox runs, and reports when it cannot', async () => {
      await using made = await open()
      const status = await made.provider.start(spec, 'r')
      const address = status.state === 'running' ? status.address : ''
      const request = { method: 'GET', path: '/anything', headers: {} } as const
      expect((await made.provider.fetch(address, request)).status).toBeGreaterThan(0)
      await made.provider.stop(ID, 'r')
      const gone = await made.provider.fetch(address, request).catch((error: unknown) => error)
      expect(gone).toMatchObject({ code: 'sandbox_unreachable' })
    })

    test('closes connections and shows the log without an error', async () => {
      await using made = await open()
      await made.provider.start(spec, 'r')
      await made.provider.disconnectAll(ID, 'r')
      expect(typeof (await made.provider.logs(ID, 1_000, 'r'))).toBe('string')
    })

    test('reports what survives a stop', async () => {
      await using made = await open()
      expect(Object.keys(made.provider.survives).sort()).toEqual(['detach', 'stop', 'upgrade'])
    })
  })
}
