import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { measureProvider, type ProviderCall } from '../src/providers/measured-provider.ts'
import { MemoryProvider } from './support/memory-provider.ts'

test('reports the duration and outcome of every call of a provider', async () => {
  let nowMs = 0
  const calls: ProviderCall[] = []
  const provider = measureProvider(new MemoryProvider(), {
    nowMs: () => (nowMs += 5),
    onCall: (call) => void calls.push(call),
  })
  const id = '0'.repeat(32)
  await provider.status(id, 'r')
  await provider.stop(id, 'r')
  await provider.renew(id, 1, 'r')
  await provider.disconnectAll(id, 'r')
  await provider.logs(id, 1, 'r')
  await provider.health('r')
  await provider.destroy(id, 'r')
  await rejectionOf(provider.fetch('nowhere', { method: 'GET', path: '/', headers: {} }))
  const poll = { method: 'GET', path: '/versions/changes', headers: {}, isPoll: true } as const
  await rejectionOf(provider.fetch('nowhere', poll))
  expect(calls.map(({ call, isOk }) => `${call} ${isOk}`)).toEqual([
    'status true',
    'stop true',
    'renew true',
    'disconnect_all true',
    'logs true',
    'health true',
    'destroy true',
    'fetch false',
    'poll false',
  ])
  expect(calls.every(({ elapsedMs }) => elapsedMs === 5)).toBe(true)
})
