import { expect, test } from 'bun:test'
import { clipboardText } from './clipboard-text.ts'

test('text that a program sets is decoded, whatever it is for', () => {
  expect(clipboardText(`c;${btoa('plain')}`)).toBe('plain')
  expect(clipboardText(`;${Buffer.from('漢字 é').toString('base64')}`)).toBe('漢字 é')
})

test('questions, nonsense and far too much are nothing (threat T23)', () => {
  const tooMuch = Buffer.alloc(1024 * 1024).toString('base64')
  for (const data of ['c;?', 'c;', 'c', '', 'c;***', `c;${tooMuch}`])
    expect(clipboardText(data)).toBeUndefined()
})
