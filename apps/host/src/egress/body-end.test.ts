import { expect, test } from 'bun:test'
import { readBodyEnd } from './body-end.ts'

function chunked() {
  const body = readBodyEnd([['Transfer-Encoding', 'chunked']], false)
  if (body === undefined) throw new Error('No body')
  return body
}

const CHUNKS = '4\r\nwiki\r\n5;ext="x"\r\npedia\r\n0\r\nTrailer: 1\r\n\r\n'

test('a body of a known length ends there', () => {
  const body = readBodyEnd([['content-length', '5']], false)
  expect(body?.take(Buffer.from('abc'))).toBe(3)
  expect(body?.isComplete()).toBe(false)
  expect(body?.take(Buffer.from('defGET'))).toBe(2)
  expect(body?.isComplete()).toBe(true)
  expect(body?.take(Buffer.from('GET'))).toBe(0)
})

test('a request without a length has no body', () => {
  expect(readBodyEnd([], false)?.take(Buffer.from('GET http://evil.com/'))).toBe(0)
})

test('finds the end of a chunked body after its trailers, however it is split', () => {
  const bytes = Buffer.from(`${CHUNKS}GET http://evil.com/`)
  for (let size = 1; size <= bytes.length; size++) {
    const body = chunked()
    let taken = 0
    for (let at = 0; at < bytes.length; at += size) taken += body.take(bytes.subarray(at, at + size)) ?? 0
    expect(taken, `pieces of ${size}`).toBe(CHUNKS.length)
    expect(body.isComplete()).toBe(true)
  }
})

test.each([
  '4\nwiki\r\n',
  '4\r\nwikixx0\r\n',
  '-1\r\n',
  '0x4\r\n',
  ' 4\r\n',
  '\r\n',
  'g\r\n',
  '4\r\r\n',
  'ffffffffffffffff\r\n',
  `4;${'x'.repeat(5_000)}`,
  `0\r\n${'a: b\r\n'.repeat(5_000)}`,
  '4;\0\r\n',
])('detects malformed chunks: %j', (text) => {
  expect(chunked().take(Buffer.from(text))).toBeUndefined()
})

test.each([
  [
    'two framings',
    [
      ['transfer-encoding', 'chunked'],
      ['content-length', '5'],
    ],
    false,
  ],
  ['a coding besides chunked', [['transfer-encoding', 'gzip, chunked']], false],
  [
    'chunked twice',
    [
      ['transfer-encoding', 'chunked'],
      ['transfer-encoding', 'chunked'],
    ],
    false,
  ],
  ['chunked in HTTP/1.0', [['transfer-encoding', 'chunked']], true],
  [
    'two lengths',
    [
      ['content-length', '5'],
      ['content-length', '5'],
    ],
    false,
  ],
  ['a length with a sign', [['content-length', '+5']], false],
  ['a length with a leading zero', [['content-length', '05']], false],
] as const)('refuses a request with ambiguous framing: %s (threat T22)', (_, headers, isHttp10) => {
  expect(readBodyEnd(headers, isHttp10)).toBeUndefined()
})
