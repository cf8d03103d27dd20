import { describe, expect, test } from 'bun:test'
import { readProxyRequest } from './proxy-request.ts'

function read(...lines: readonly string[]) {
  return readProxyRequest(Buffer.from([...lines, '', ''].join('\r\n'), 'latin1'))
}

function forwarded(...lines: readonly string[]): string {
  const request = read(...lines)
  if (request.kind !== 'forward') throw new Error(`Not forwarded: ${request.kind}`)
  return request.head.toString('latin1')
}

test('parses CONNECT as a tunnel', () => {
  expect(read('CONNECT good.com:443 HTTP/1.1', 'Host: good.com:443')).toMatchObject({
    kind: 'tunnel',
    target: { host: { kind: 'name', name: 'good.com' }, port: 443 },
  })
})

test('forwards a request in origin form, without hop-by-hop headers', () => {
  const head = forwarded(
    'POST http://Good.com:8080/a?b HTTP/1.1',
    'Host: evil.com',
    'Proxy-Authorization: Basic c2VjcmV0',
    'proxy-connection: keep-alive',
    'Connection: keep-alive, X-Hop',
    'x-hop: 1',
    'TE: trailers',
    'Upgrade: websocket',
    'Expect: 100-continue',
    'Content-Length: 3',
    'Accept:   */*  ',
  )
  expect(head).toBe(
    'POST /a?b HTTP/1.1\r\nHost: good.com:8080\r\nContent-Length: 3\r\nAccept: */*\r\nConnection: close\r\n\r\n',
  )
})

test('Connection cannot remove framing headers', () => {
  const head = forwarded('POST http://good.com/ HTTP/1.1', 'Connection: content-length', 'Content-Length: 3')
  expect(head).toContain('Content-Length: 3\r\n')
})

describe('refuses ambiguous requests (threat T22)', () => {
  test.each([
    ['CRLF in CONNECT', 'CONNECT good.com\r\nX: evil.com:443 HTTP/1.1'],
    ['a lone LF', 'CONNECT good.com:443 HTTP/1.1\nHost: evil.com'],
    ['a lone CR', 'CONNECT good.com:443 HTTP/1.1\rX'],
    ['a NUL', 'CONNECT evil.com\0.good.com:443 HTTP/1.1'],
    ['a NUL in a header', 'CONNECT good.com:443 HTTP/1.1\r\nA: \0'],
    ['two targets', 'CONNECT good.com:443 evil.com:443 HTTP/1.1'],
    ['two spaces', 'CONNECT  good.com:443 HTTP/1.1'],
    ['a tab', 'CONNECT\tgood.com:443 HTTP/1.1'],
    ['a folded header', 'CONNECT good.com:443 HTTP/1.1\r\nA: b\r\n c: d'],
    ['a space before the colon', 'GET http://good.com/ HTTP/1.1\r\nContent-Length : 3'],
    ['a header without a name', 'GET http://good.com/ HTTP/1.1\r\n: 3'],
    ['high bytes', 'CONNECT g\xf6\xf6d.com:443 HTTP/1.1'],
    ['another version', 'CONNECT good.com:443 HTTP/2.0'],
    ['no version', 'GET http://good.com/'],
    ['a method in lower case', 'connect good.com:443 HTTP/1.1'],
    ['a path', 'GET / HTTP/1.1\r\nHost: good.com'],
    ['https', 'GET https://good.com/ HTTP/1.1'],
    ['a user name', 'GET http://good.com@evil.com/ HTTP/1.1'],
    ['101 headers', `GET http://good.com/ HTTP/1.1${'\r\nA: b'.repeat(101)}`],
    ['nothing', ''],
  ])('%s', (_, text) => expect(read(text).kind).toBe('bad'))

  test.each([
    [['Content-Length: 3', 'Content-Length: 4']],
    [['Content-Length: 3', 'Content-Length: 3']],
    [['Content-Length: 3, 3']],
    [['Content-Length: +3']],
    [['Content-Length: 0x3']],
    [['Content-Length: -1']],
    [['Content-Length: 99999999999999999999']],
    [['Content-Length: 3', 'Transfer-Encoding: chunked']],
    [['Transfer-Encoding: gzip, chunked']],
    [['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
    [['Transfer-Encoding: identity']],
    [['Transfer-Encoding: \x0bchunked']],
  ])('the framing %j', (headers) =>
    expect(read('POST http://good.com/ HTTP/1.1', ...headers).kind).toBe('bad'),
  )

  test('chunks in HTTP/1.0', () =>
    expect(read('POST http://good.com/ HTTP/1.0', 'Transfer-Encoding: chunked').kind).toBe('bad'))
})

test('reports an invalid request without quoting it', () => {
  const request = read('CONNECT \x1b[31mevil HTTP/1.1')
  expect(request.kind === 'bad' && request.message).toMatch(/^Sandwire proxy: [a-zA-Z0-9 :/.,]+$/)
})
