import { expect, test } from 'bun:test'
import { isAuthor, storeAuthor, AccountTexts, readAuthor } from './account-storage.ts'

function openStorage(kept?: string, name = 'key') {
  const texts = new Map(kept === undefined ? [] : [[name, kept]])
  return {
    getItem: (key: string) => texts.get(key) ?? null,
    setItem: (key: string, text: string) => void texts.set(key, text),
  }
}

test('a text comes back by its name, until it is none, and to its account alone', () => {
  const storage = openStorage()
  const texts = new AccountTexts(storage, 'key', 'a1')
  texts.store('one', 'first\nline')
  texts.store('two', 'second')
  expect(new AccountTexts(storage, 'key', 'a1').read('one')).toBe('first\nline')
  expect(new AccountTexts(storage, 'key', 'a2').read('one')).toBeUndefined()
  texts.store('one', '')
  expect([texts.read('one'), texts.read('two')]).toEqual([undefined, 'second'])
})

test('the oldest of very many texts goes', () => {
  const texts = new AccountTexts(openStorage(), 'key', 'a1')
  for (let at = 0; at <= 50; at += 1) texts.store(`n${at}`, 'x')
  expect([texts.read('n0'), texts.read('n1'), texts.read('n50')]).toEqual([undefined, 'x', 'x'])
})

test('what is kept wrong is nothing', () => {
  for (const kept of [
    '{',
    'null',
    '7',
    '{"account":"a1"}',
    '{"account":"a1","texts":7}',
    '{"account":"a1","texts":{"x":1}}',
  ])
    expect(new AccountTexts(openStorage(kept), 'key', 'a1').read('x')).toBeUndefined()
})

const ann = { name: 'Ann', email: 'ann@example.test' }

test('an author comes back for the account that named it, and for no other', () => {
  const storage = openStorage()
  storeAuthor(storage, 'a1', ann)
  expect(readAuthor(storage, 'a1')).toEqual(ann)
  expect(readAuthor(storage, 'a2')).toBeUndefined()
})

test('what is kept wrong is nobody', () => {
  for (const kept of [
    '{',
    'null',
    '7',
    '{"account":"a1","name":1,"email":"x"}',
    '{"account":"a1","name":"<","email":"x"}',
  ])
    expect(readAuthor(openStorage(kept, 'sandwire.author'), 'a1')).toBeUndefined()
})

test('an author has a name and an address that git can write', () => {
  expect(isAuthor(ann)).toBe(true)
  for (const name of ['', ' ', 'a<b', 'a\nb']) expect(isAuthor({ ...ann, name })).toBe(false)
})
