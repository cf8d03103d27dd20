import { expect, test } from 'bun:test'
import { findFilePlaces, readCells } from './file-links.ts'

/** As much of a cell as is read: nothing in it is the second half of a wide one. */
function cellOf(characters: string | undefined, isWide: boolean) {
  const width = characters === undefined ? 0 : isWide ? 2 : 1
  return { getWidth: () => width, getChars: () => characters ?? '' }
}

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

test('takes letters of all scripts', () => {
  expect(places('src/café.ts:3:1 и доки/файл.md')).toEqual([
    { path: 'src/café.ts', line: 3, column: 1 },
    { path: 'доки/файл.md' },
  ])
  expect(places('cafe\u{301}/naïve.py')).toEqual([{ path: 'cafe\u{301}/naïve.py' }])
})

test('knows the cells of what stands behind wide characters', () => {
  const shown = ['漢', undefined, '字', undefined, '🙂', undefined, ' ', 'a', '.', 't', 's', '']
  const { text, cells } = readCells({
    length: shown.length,
    getCell: (x) => cellOf(shown[x], shown[x + 1] === undefined && x + 1 < shown.length),
  })
  expect(text).toBe('漢字🙂 a.ts ')
  const [found] = findFilePlaces(text)
  expect(found?.place).toEqual({ path: 'a.ts' })
  const { at = 0, length = 0 } = found ?? {}
  expect([cells[at]?.from, cells[at + length - 1]?.to]).toEqual([8, 11])
})
