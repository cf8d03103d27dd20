import { describe, expect, test } from 'bun:test'
import { isSuspicious, webAddress } from './links.ts'

const TARGET = 'https://example.com/a/b?c=d'

describe('isSuspicious (threat T23)', () => {
  test.each([
    'http://paypal.com',
    'paypal.com',
    'www.paypal.com/login',
    'see https://paypal.com for more',
    'https://example.com/other',
    'https://example.com.evil.net/a/b?c=d',
    'https://example.com/a/b?c=d https://paypal.com',
    'pay\u{200b}pal.com',
    'раураl.com',
    'paypal。com',
    'https://[',
  ])('asks about %p', (text) => expect(isSuspicious(text, TARGET, true)).toBe(true))

  test.each([
    'the docs',
    '-Wunused-variable',
    'https://example.com/a/b?c=d',
    '<https://EXAMPLE.com/a/b?c=d>.',
    'example.com',
    'http://example.com/',
    'version 1.2.3',
  ])('does not ask about %p', (text) => expect(isSuspicious(text, TARGET, true)).toBe(false))

  test('asks about a text without an address where the target is not shown', () => {
    expect(isSuspicious('the docs', TARGET, false)).toBe(true)
    expect(isSuspicious(TARGET, TARGET, false)).toBe(false)
  })
  test('asks about a URL with credentials', () => {
    expect(isSuspicious('the docs', 'https://paypal.com@example.com/', true)).toBe(true)
  })
})

test('allows only web links (threat T23)', () => {
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
