import { expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { settle, unwrap } from '../src/outcome.ts'

test('an expected error keeps its code and message', async () => {
  const outcome = await settle(
    () => {
      throw new SandwireError('conflict', 'Ours', { cause: 'RAW' })
    },
    () => undefined,
  )
  expect(outcome).toEqual({ ok: false, code: 'conflict', message: 'Ours' })
  expect(() => unwrap(outcome)).toThrow('Ours')
})

test('(threat T46) an unexpected error loses its message, which is logged', async () => {
  const faults: unknown[] = []
  const fault = new Error('RAW')
  const outcome = await settle(
    () => {
      throw fault
    },
    (cause) => faults.push(cause),
  )
  expect(outcome).toEqual({ ok: false, code: 'internal', message: 'Internal error' })
  expect(faults).toEqual([fault])
})
