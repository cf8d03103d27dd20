import { expect, test } from 'bun:test'
import { describeSaved, nameOf } from './describe-saved.ts'

test('says when files were saved, that they are being saved, or why they are not', () => {
  const idle = { state: 'idle', savedMs: 1_000_000, error: null } as const
  expect(describeSaved(idle, 1_000_500)).toBe('Saved now')
  expect(describeSaved(idle, 1_003_900)).toBe('Saved 3 s ago')
  expect(describeSaved(idle, 1_000_000 + 5 * 60_000)).toBe('Saved 5 minutes ago')
  expect(describeSaved({ ...idle, savedMs: null }, 0)).toBeUndefined()
  for (const state of ['pending', 'syncing', 'flushing'] as const)
    expect(describeSaved({ ...idle, state }, 1_003_000)).toBe('Saving')
  expect(describeSaved({ ...idle, state: 'retrying', error: 'store_unavailable' }, 0)).toBe(
    'Not saved: the store does not respond',
  )
  expect(describeSaved({ ...idle, state: 'error', error: 'new_code' }, 0)).toBe('Not saved: new_code')
})

test('names a version by its name or number', () => {
  expect(nameOf({ name: 'before', version: 3 })).toBe('before')
  expect(nameOf({ name: null, version: 3 })).toBe('Version 3')
})
