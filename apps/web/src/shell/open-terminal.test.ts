import { expect, test } from 'bun:test'
import { takeOpenTarget } from './open-terminal.ts'

function storageWith(text: string) {
  const entries = new Map([['sandwire.open', text]])
  return {
    entries,
    getItem: (key: string) => entries.get(key) ?? null,
    removeItem: (key: string) => void entries.delete(key),
  }
}

test('reads the target of a share link once', () => {
  const came = { sandbox: 'a', session: 'a.1', role: 'viewer' } as const
  const storage = storageWith(JSON.stringify(came))
  expect(takeOpenTarget(storage)).toEqual(came)
  expect(takeOpenTarget(storage)).toBeUndefined()
})

test.each(['', 'null', '{"sandbox":1}', '{"sandbox":"a","session":null,"role":"owner"}', '[]'])(
  'ignores and removes an invalid target: %p',
  (text) => {
    const storage = storageWith(text)
    expect(takeOpenTarget(storage)).toBeUndefined()
    expect(storage.entries.size).toBe(0)
  },
)
