import { expect, test } from 'bun:test'
import { acceptedCodings, CODINGS, hasTag, tagOf } from '../src/http/content-coding.ts'

test('selects the best content coding that the client accepts', () => {
  const accepted = (header?: string) => acceptedCodings(header, CODINGS).join()
  expect(accepted()).toBe('')
  expect(accepted('')).toBe('')
  expect(accepted('identity')).toBe('')
  expect(accepted('deflate, zstd')).toBe('')
  expect(accepted('gzip')).toBe('gzip')
  expect(accepted('gzip, deflate, BR, zstd')).toBe('br,gzip')
  expect(accepted('br;q=0, gzip;q=0.5')).toBe('gzip')
  expect(accepted('*')).toBe('br,gzip')
  expect(accepted('br;q=0.000, *;q=0.1')).toBe('gzip')
  expect(accepted('br;q=nonsense')).toBe('')
  expect(acceptedCodings('gzip, br', [])).toEqual([])
})

test('each content coding of a file has its own ETag', () => {
  expect([tagOf('a-1.js', undefined), tagOf('a-1.js', 'br')]).toEqual(['"a-1.js"', '"a-1.js.br"'])
  expect(hasTag('"x", W/"a-1.js.br"', '"a-1.js.br"')).toBe(true)
  expect(hasTag('"a-1.js"', '"a-1.js.br"')).toBe(false)
  expect(hasTag('*', '"a-1.js"')).toBe(true)
  expect(hasTag(undefined, '"a-1.js"')).toBe(false)
})
