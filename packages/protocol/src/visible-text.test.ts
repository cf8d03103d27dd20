import { expect, test } from 'bun:test'
import { INVISIBLE, normalizeName } from './visible-text.ts'

test.each([
  ['Ann Archer', 'Ann Archer'],
  ['  Ann \t\n Archer\u3000', 'Ann Archer'],
  ['Ann\u2800\u3164\u115f\uffa0Archer', 'Ann Archer'],
  ['Ann\u{1d159}\u{13441}\u{13442}\u{16fe4}\ufffcArcher', 'Ann Archer'],
  ['A\u034fnn\ufe0f', 'Ann'],
  ['\u202eAnn\u2066', 'Ann'],
  ['Ａｎｎ', 'Ann'],
  ['Zoë 山田 🦊', 'Zoë 山田 🦊'],
  [`a${'\u0323'.repeat(50)}`, 'ạ\u0323\u0323\u0323'],
  ['\u2800 \u3164\u200b', ''],
  ['\ud800', ''],
])('normalizeName of %j is %j', (text, name) => {
  expect(normalizeName(text, 64)).toBe(name)
  expect(normalizeName(name, 64)).toBe(name)
})

test('normalizeName cuts between characters', () => {
  expect(normalizeName('a\u{1F600}\u{1F600}', 4)).toBe('a\u{1F600}')
  expect(normalizeName('abc def', 4)).toBe('abc')
})

test('INVISIBLE matches what shows nothing, but no space', () => {
  const shown = 'a b\u00a0c\u3000d é 한 ⠁ 🦊'
  expect(shown.replaceAll(INVISIBLE, '')).toBe(shown)
  expect(
    '\u0000\u001b\u007f\u00ad\u115f\u200b\u200d\u202e\u2028\u2800\u3164\ufe0f\ufeff\ufffc\u{e0041}\u{13441}\u{16fe4}\u{1d159}'.replaceAll(
      INVISIBLE,
      '',
    ),
  ).toBe('')
})
