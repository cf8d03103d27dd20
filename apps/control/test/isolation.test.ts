import { expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { cacheIsolation } from '../src/providers/isolation.ts'

test('the isolation of sandboxes is requested until it is known, then cached', async () => {
  let requests = 0
  const isolationOf = cacheIsolation({
    health: async () => {
      requests += 1
      if (requests === 1) throw new SandwireError('provider_unavailable', 'It is away')
      return { status: 'ok', version: '0', isolation: 'bubblewrap', sandboxes: 0 }
    },
  })
  expect(await isolationOf('r')).toBeNull()
  expect(await isolationOf('r')).toBe('bubblewrap')
  expect(await isolationOf('r')).toBe('bubblewrap')
  expect(requests).toBe(2)
})
