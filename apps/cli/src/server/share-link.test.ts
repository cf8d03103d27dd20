import { expect, test } from 'bun:test'
import { parseShareLink } from './share-link.ts'

const SECRET = `${'0'.repeat(32)}.${'1'.repeat(20)}.${'s'.repeat(43)}`

test('parseShareLink reads where it is and what to show there', () => {
  expect(parseShareLink(` https://h.example:1/join#${SECRET}\n`)).toEqual({
    origin: 'https://h.example:1',
    secret: SECRET,
  })
})

test.each([
  '',
  'x',
  'https://h.example/join',
  `https://h.example/other#${SECRET}`,
  `https://h.example/join?${SECRET}`,
  `https://h.example/join#${SECRET}/../x`,
  `http://h.example/join#${SECRET}`,
  `https://u:p@h.example/join#${SECRET}`,
  `ftp://h.example/join#${SECRET}`,
])('parseShareLink refuses %j without repeating it', (text) => {
  try {
    parseShareLink(text)
  } catch (error) {
    expect(String(error)).not.toContain('ssss')
    return
  }
  throw new Error('It was taken')
})
