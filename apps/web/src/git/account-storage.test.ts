import { expect, test } from 'bun:test'
import { isAuthor, storeAuthor, AccountTexts, readAuthor } from './account-storage.ts'

function openStorage(stored?: string, name = 'key') {
  const texts = new Map(stored === undefined ? [] : [[name, stored]])
  return {
    getItem: (key: string) => texts.get(key) ?? null,
    setItem: (key: string, text: string) => void texts.set(key, text),
  }
}

test('returns a text by name, to its account alone, until it is emptied', () => {
  const storage = openStorage()
  const texts = new AccountTexts(storage, 'key', 'a1')
  texts.store('one', 'first\nline')
  texts.store('two', 'second')
  expect(new AccountTexts(storage, 'key', 'a1').read('one')).toBe('first\nline')
  expect(new AccountTexts(storage, 'key', 'a2').read('one')).toBeUndefined()
  texts.store('one', '')
  expect([texts.read('one'), texts.read('two')]).toEqual([undefined, 'second'])
})

test('drops the oldest of many texts', () => {
  const texts = new AccountTexts(openStorage(), 'key', 'a1')
  for (let at = 0; at <= 50; at += 1) texts.store(`n${at}`, 'x')
  expect([texts.read('n0'), texts.read('n1'), texts.read('n50')]).toEqual([undefined, 'x', 'x'])
})

test('ignores corrupt texts', () => {
  for (const stored of [
    '{',
    'null',
    '7',
    '{"account":"a1"}',
    '{"account":"a1","texts":7}',
    '{"account":"a1","texts":{"x":1}}',
  ])
    expect(new AccountTexts(openStorage(stored), 'key', 'a1').read('x')).toBeUndefined()
})

const ann = { name: 'Ann', email: 'ann@example.test' }

test('returns an author to the account that stored it, and to no other', () => {
  const storage = openStorage()
  storeAuthor(storage, 'a1', ann)
  expect(readAuthor(storage, 'a1')).toEqual(ann)
  expect(readAuthor(storage, 'a2')).toBeUndefined()
})

test('ignores corrupt authors', () => {
  for (const stored of [
    '{',
    'null',
    '7',
    '{"account":"a1","name":1,"email":"x"}',
    '{"account":"a1","name":"<","email":"x"}',
  ])
    expect(readAuthor(openStorage(stored, 'sandwire.author'), 'a1')).toBeUndefined()
})

test('accepts only names and addresses that git can write', () => {
  expect(isAuthor(ann)).toBe(true)
  for (const name of ['', ' ', 'a<b', 'a\nb']) expect(isAuthor({ ...ann, name })).toBe(false)
})
