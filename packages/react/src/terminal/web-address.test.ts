import { expect, test } from 'bun:test'
import { webAddress } from './web-address.ts'

test('a link leads to the web and nowhere else (threat T23)', () => {
  expect(webAddress('https://example.com/a')).toBe('https://example.com/a')
  expect(webAddress('http://localhost:8080')).toBe('http://localhost:8080/')
  for (const text of [
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'file:///etc/passwd',
    'vbscript:x',
    'blob:https://example.com/1',
    'ssh://host',
    'example.com',
    '',
  ])
    expect(webAddress(text)).toBeUndefined()
})
