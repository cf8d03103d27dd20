import { expect, test } from 'bun:test'
import { returnPathOf } from '../src/auth/login-state.ts'

test.each(['/', '/join', '/terminal/a.b', '/x?to=%2Fy&z=1', "/a-b_c~d!e$f'(g)*+,;=:@"])(
  'the path %j is one of ours',
  (path) => expect(returnPathOf(path)).toBe(path),
)

test.each([
  '//evil.example',
  '///evil.example',
  '/\\evil.example',
  '\\\\evil.example',
  '/\t/evil.example',
  '/\n/evil.example',
  'https://evil.example',
  'https:evil.example',
  'https:/evil.example',
  'javascript:alert(1)',
  'evil.example',
  '@evil.example',
  '.evil.example',
  '/.//evil.example',
  '/..//evil.example',
  '/a/..//evil.example',
  '/%2e//evil.example',
  '/%2Fevil.example',
  '/%2f%2fevil.example',
  '/%5cevil.example',
  '/%5C%5Cevil.example',
  '/%252fevil.example',
  '/%09/evil.example',
  '/%0d%0aset-cookie:x=y',
  '/join#secret',
  '/ü',
  ' /join',
  '/signin/start?issuer=test',
  '/signin',
  '/api/signout',
  '/./signin/start',
  `/${'x'.repeat(512)}`,
  '',
])('the path %j redirects to the start page (open redirect)', (path) => expect(returnPathOf(path)).toBe('/'))

test('a missing path redirects to the start page', () => expect(returnPathOf(null)).toBe('/'))
