import { expect, test } from 'bun:test'
import { ResponseHead } from './response-head.ts'

const ANSWER =
  'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n' +
  'HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 11\r\nX-N: caf\xe9\r\n\r\n'
const BODY = 'HTTP/1.1 \r\n\r\n'
const PASSED =
  'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n' +
  'HTTP/1.1 200 OK\r\nContent-Length: 11\r\nX-N: caf\xe9\r\nConnection: close\r\n\r\n'

test('announces that the connection closes, however the response is split', () => {
  const bytes = Buffer.from(ANSWER + BODY, 'latin1')
  for (let size = 1; size <= bytes.length; size += 7) {
    const head = new ResponseHead()
    const out: Buffer[] = []
    for (let at = 0; at < bytes.length; at += size)
      out.push(head.take(bytes.subarray(at, at + size)) ?? Buffer.from('!'))
    expect(Buffer.concat(out).toString('latin1'), `pieces of ${size}`).toBe(PASSED + BODY)
  }
})

test.each([
  'SSH-2.0-OpenSSH\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n',
  'HTTP/1.1 200 OK\r\nA: \0\r\n\r\n',
  'HTTP/1.1 200 O\0K\r\n\r\n',
  'HTTP/1.1 200 OK\r\n A: b\r\n\r\n',
  `HTTP/1.1 200 OK\r\nA: ${'x'.repeat(70_000)}`,
])('refuses an invalid response head', (text) => {
  expect(new ResponseHead().take(Buffer.from(text))).toBeUndefined()
})
