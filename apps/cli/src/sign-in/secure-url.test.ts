import { expect, test } from 'bun:test'
import { isSecureUrl, webAddress } from './secure-url.ts'

test.each([
  ['https://a.example', true],
  ['https://a.example:8443/x', true],
  ['http://localhost:1', true],
  ['http://127.0.0.1:1', true],
  ['http://[::1]:1', true],
  ['http://a.example', false],
  ['http://localhost.evil.example', false],
  ['http://127.0.0.1.evil.example', false],
  ['http://0.0.0.0', false],
  ['https://user:password@a.example', false],
  ['ftp://localhost', false],
  ['file:///etc/passwd', false],
  ['javascript:alert(1)', false],
  ['nonsense', false],
])('isSecureUrl says of %s: %p', (url, expected) => expect(isSecureUrl(url)).toBe(expected))

test.each([
  ['https://a.example/device', 'https://a.example/device'],
  ['http://a.example/device?user_code=AB-CD', 'http://a.example/device?user_code=AB-CD'],
  ['https://a.example/\x1b]0;title\x07x', 'https://a.example/%1B]0;title%07x'],
  ['https://a.example/\u202eedoc', 'https://a.example/%E2%80%AEedoc'],
  ['https://a.example/#\x1b[2J', 'https://a.example/#%1B[2J'],
])('webAddress makes %j safe to show', (given, shown) => expect(webAddress(given)).toBe(shown))

test.each([
  'javascript:alert(1)',
  'file:///etc/passwd',
  'data:text/html,x',
  '--version',
  '',
  'https://bank.example@evil.example/',
  `https://a.example/${'x'.repeat(4000)}`,
])('webAddress is none for %j', (given) => expect(webAddress(given)).toBeUndefined())
