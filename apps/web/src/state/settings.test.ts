import { expect, test } from 'bun:test'
import { DEFAULT_SETTINGS, readSettings } from './settings.ts'

test('restores settings, with defaults for invalid ones', () => {
  expect(readSettings(JSON.stringify({ ...DEFAULT_SETTINGS, theme: 'light', fontSize: 20 }))).toEqual({
    ...DEFAULT_SETTINGS,
    theme: 'light',
    fontSize: 20,
  })
  expect(readSettings('{"theme":"pink","fontSize":1000,"bell":"none","__proto__":{"x":1}}')).toEqual({
    ...DEFAULT_SETTINGS,
    bell: 'none',
  })
  for (const text of [null, '', '{', '1', '[]', 'null']) expect(readSettings(text)).toEqual(DEFAULT_SETTINGS)
})
