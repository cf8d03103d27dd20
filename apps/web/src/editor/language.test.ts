import { expect, test } from 'bun:test'
import { LanguageDescription, LanguageSupport } from '@codemirror/language'
import { languageOf } from './language.ts'

test('a language is told by the name of a file', async () => {
  expect(await languageOf('a/b.json')).toBeInstanceOf(LanguageSupport)
  expect(await languageOf('a.json/b')).toEqual([])
})

test('a language that cannot be loaded is none', async () => {
  const absent = LanguageDescription.of({
    name: 'Absent',
    extensions: ['abs'],
    load: () => Promise.reject(new TypeError('Failed to fetch dynamically imported module')),
  })
  expect(await languageOf('a.abs', [absent])).toEqual([])
})
