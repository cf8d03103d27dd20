import { expect, test } from 'bun:test'
import { KeptTexts } from './kept-texts.ts'

function openShelf(kept?: string) {
  const texts = new Map(kept === undefined ? [] : [['key', kept]])
  return {
    getItem: (key: string) => texts.get(key) ?? null,
    setItem: (key: string, text: string) => void texts.set(key, text),
  }
}

test('a text comes back by its name, until it is none, and to its account alone', () => {
  const shelf = openShelf()
  const texts = new KeptTexts(shelf, 'key', 'a1')
  texts.keep('one', 'first\nline')
  texts.keep('two', 'second')
  expect(new KeptTexts(shelf, 'key', 'a1').read('one')).toBe('first\nline')
  expect(new KeptTexts(shelf, 'key', 'a2').read('one')).toBeUndefined()
  texts.keep('one', '')
  expect([texts.read('one'), texts.read('two')]).toEqual([undefined, 'second'])
})

test('the oldest of very many texts goes', () => {
  const texts = new KeptTexts(openShelf(), 'key', 'a1')
  for (let at = 0; at <= 50; at += 1) texts.keep(`n${at}`, 'x')
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
    expect(new KeptTexts(openShelf(kept), 'key', 'a1').read('x')).toBeUndefined()
})
