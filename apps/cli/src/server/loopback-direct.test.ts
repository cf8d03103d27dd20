import { expect, test } from 'bun:test'
import { keepLoopbackDirect } from './loopback-direct.ts'

test('loopback is added to what needs no proxy', () => {
  const none: Record<string, string | undefined> = {}
  keepLoopbackDirect(none)
  expect(none['NO_PROXY']).toBe('localhost,127.0.0.1,::1')
  const some: Record<string, string | undefined> = { NO_PROXY: 'example.com' }
  keepLoopbackDirect(some)
  expect([some['no_proxy'], some['NO_PROXY']]).toEqual(Array(2).fill('example.com,localhost,127.0.0.1,::1'))
})
