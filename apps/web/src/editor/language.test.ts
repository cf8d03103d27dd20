import { expect, test } from 'bun:test'
import { LanguageDescription, LanguageSupport } from '@codemirror/language'
import { languageOf } from './language.ts'

test('detects the language by file name', async () => {
  expect(await languageOf('a/b.json')).toBeInstanceOf(LanguageSupport)
  expect(await languageOf('a.json/b')).toEqual([])
})

test('treats a language that cannot be loaded as none', async () => {
  const absent = LanguageDescription.of({
    name: 'Absent',
    extensions: ['abs'],
    load: () => Promise.reject(new TypeError('Failed to fetch dynamically imported module')),
  })
  expect(await languageOf('a.abs', [absent])).toEqual([])
})
