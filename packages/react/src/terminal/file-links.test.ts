import { expect, test } from 'bun:test'
import { findFilePlaces } from './file-links.ts'

const places = (text: string) => findFilePlaces(text).map(({ place }) => place)

test('finds what compilers and tools print', () => {
  expect(places('src/main.ts:12:5 - error TS2304')).toEqual([{ path: 'src/main.ts', line: 12, column: 5 }])
  expect(places('  at file (./a/b.js:3)')).toEqual([{ path: './a/b.js', line: 3 }])
  expect(places('modified:   README.md')).toEqual([{ path: 'README.md' }])
  expect(places('/home/user/workspace/x.c')).toEqual([{ path: '/home/user/workspace/x.c' }])
})

test('leaves words, versions and web addresses alone', () => {
  expect(places('hello world 1.2.3 done.')).toEqual([])
  expect(places('https://example.com/a/b.html')).toEqual([])
  expect(places('user@host.example')).toEqual([])
})

test('says where they stand', () => {
  expect(findFilePlaces('see a/b.ts now')).toEqual([{ at: 4, length: 6, place: { path: 'a/b.ts' } }])
})

test('is not slow on a line of nonsense', () => {
  expect(places(`${'a/'.repeat(100_000)}`).length).toBeLessThan(2)
})
