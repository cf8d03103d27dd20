import { expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { cacheIsolation } from '../src/providers/isolation.ts'

test('the isolation of sandboxes is requested until it is known, then cached', async () => {
  let asked = 0
  const isolationOf = cacheIsolation({
    health: async () => {
      asked += 1
      if (asked === 1) throw new SandwireError('provider_unavailable', 'It is away')
      return { status: 'ok', version: '0', isolation: 'bubblewrap', sandboxes: 0 }
    },
  })
  expect(await isolationOf('r')).toBeNull()
  expect(await isolationOf('r')).toBe('bubblewrap')
  expect(await isolationOf('r')).toBe('bubblewrap')
  expect(asked).toBe(2)
})
