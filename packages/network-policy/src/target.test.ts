import { describe, expect, test } from 'bun:test'
import { parseConnectTarget, parseRequestTarget, formatHost, formatHostHeader } from './target.ts'

function connect(text: string): string | undefined {
  const target = parseConnectTarget(text)
  return target === undefined ? undefined : `${formatHost(target.host)} ${target.port}`
}

test('a CONNECT target is parsed to its canonical form', () => {
  expect(connect('good.com:443')).toBe('good.com 443')
  expect(connect('GOOD.Com.:443')).toBe('good.com 443')
  expect(connect('xn--bcher-kva.example:8080')).toBe('xn--bcher-kva.example 8080')
  expect(connect('8.8.8.8:443')).toBe('8.8.8.8 443')
  expect(connect('[2606:4700::1111]:443')).toBe('[2606:4700::1111] 443')
  expect(connect('[::FFFF:169.254.169.254]:80')).toBe('[::ffff:a9fe:a9fe] 80')
})

describe('an ambiguous CONNECT target is refused (threat T22)', () => {
  const wrong = {
    'a NUL': ['evil.com\0.good.com:443', 'good.com\0:443'],
    'a line break': ['good.com:443\r\nHost: evil.com', 'good.com\n:443', 'good.com\r:443'],
    'a user name': ['good.com:443@evil.com:443', 'good.com@evil.com:443', 'a:b@evil.com:443'],
    'an odd number': [
      '0x7f.1:80',
      '2130706433:80',
      '0:80',
      '127.1:80',
      '0177.0.0.1:80',
      '1.0x7f:80',
      'good.com.0x:80',
    ],
    'a single label': ['localhost:80', 'localhost.:80', 'metadata:80', 'com:443', '.:80'],
    'an empty label': ['good..com:443', '.good.com:443', 'good.com..:443', ':443'],
    'a character no name has': [
      'good_com.x:443',
      'gööd.com:443',
      'good%2ecom.x:443',
      'good.com/:443',
      '-good.com:443',
      'good-.com:443',
      'good.com%00:443',
      'a b.com:443',
      '*.good.com:443',
      'good.com\u200b:443',
    ],
    'no port, or an odd one': [
      'good.com',
      'good.com:',
      'good.com:0',
      'good.com:080',
      'good.com:65536',
      'good.com:+443',
      'good.com:443:80',
      'good.com: 443',
      'good.com:0x1bb',
      'good.com:443#',
    ],
    'wrong brackets': [
      '[good.com]:443',
      '[8.8.8.8]:443',
      '2606:4700::1111:443',
      '[::1:443',
      '::1]:443',
      '[fe80::1%eth0]:80',
      '[]:443',
      '[::1]x:443',
    ],
    'too long a name': [
      `${'a'.repeat(64)}.com:443`,
      `${'a.'.repeat(130)}com:443`,
      `${'a'.repeat(100_000)}:443`,
    ],
  }
  for (const [what, texts] of Object.entries(wrong))
    test(what, () => {
      for (const text of texts) expect(connect(text), text).toBeUndefined()
    })
})

test('a request target is parsed to host, port and path', () => {
  const read = (text: string) => {
    const target = parseRequestTarget(text)
    return target === undefined ? undefined : [formatHostHeader(target), target.port, target.path]
  }
  expect(read('http://good.com/a?b=http://evil.com/')).toEqual(['good.com', 80, '/a?b=http://evil.com/'])
  expect(read('HTTP://Good.com')).toEqual(['good.com', 80, '/'])
  expect(read('http://good.com?x')).toEqual(['good.com', 80, '/?x'])
  expect(read('http://good.com:8080/x@y')).toEqual(['good.com:8080', 8080, '/x@y'])
  expect(read('http://[2606::1]/')).toEqual(['[2606::1]', 80, '/'])
  const secure = parseRequestTarget('https://good.com/x', ['http', 'https'])
  expect(secure).toMatchObject({ port: 443, path: '/x', scheme: 'https' })
  expect(secure === undefined ? '' : formatHostHeader(secure)).toBe('good.com')
  const wrong = [
    '/',
    'https://good.com/',
    'ftp://good.com/',
    'http:good.com',
    'http:///x',
    'http://u@good.com/',
    '*',
  ]
  const worse = [
    'http://u:p@good.com/',
    'http://good.com#@evil.com/',
    'http://good.com\\@evil.com/',
    'http://0x7f.1/',
  ]
  const worst = [
    'http://2130706433/',
    'http://0/',
    'http://[::1/',
    'http://localhost./',
    'http://good.com:80:80/',
  ]
  for (const text of [...wrong, ...worse, ...worst]) expect(read(text), text).toBeUndefined()
})
