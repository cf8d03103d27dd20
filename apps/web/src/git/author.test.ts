import { expect, test } from 'bun:test'
import { isAuthor, keepAuthor, readAuthor } from './author.ts'

function openShelf(kept?: string) {
  const texts = new Map(kept === undefined ? [] : [['sandwire.author', kept]])
  return {
    getItem: (key: string) => texts.get(key) ?? null,
    setItem: (key: string, text: string) => void texts.set(key, text),
  }
}

const ann = { name: 'Ann', email: 'ann@example.test' }

test('an author comes back for the account that named it, and for no other', () => {
  const shelf = openShelf()
  keepAuthor(shelf, 'a1', ann)
  expect(readAuthor(shelf, 'a1')).toEqual(ann)
  expect(readAuthor(shelf, 'a2')).toBeUndefined()
})

test('what is kept wrong is nobody', () => {
  for (const kept of [
    '{',
    'null',
    '7',
    '{"account":"a1","name":1,"email":"x"}',
    '{"account":"a1","name":"<","email":"x"}',
  ])
    expect(readAuthor(openShelf(kept), 'a1')).toBeUndefined()
})

test('an author has a name and an address that git can write', () => {
  expect(isAuthor(ann)).toBe(true)
  for (const name of ['', ' ', 'a<b', 'a\nb']) expect(isAuthor({ ...ann, name })).toBe(false)
})
