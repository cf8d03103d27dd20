import { expect, test } from 'bun:test'
import { choose, formatAnswer, type GivenAnswer, NO_ANSWER, write } from './given-answer.ts'

const ONE = { allowsMany: false }
const MANY = { allowsMany: true }

/** Types a text into the field, letter by letter. */
function type(question: typeof ONE, answer: GivenAnswer, text: string): GivenAnswer {
  return Array.from(text).reduce((now, letter) => write(question, now, now.own + letter), answer)
}

test('an answer of one may have commas, as an option or as own words', () => {
  const chosen = choose(ONE, NO_ANSWER, 'Yes, all', true)
  expect([chosen.labels, formatAnswer(chosen)]).toEqual([['Yes, all'], 'Yes, all'])
  const written = type(ONE, chosen, 'no, none')
  expect([written.labels, formatAnswer(written)]).toEqual([[], 'no, none'])
  expect(choose(ONE, written, 'Yes, all', true)).toEqual({ labels: ['Yes, all'], own: '' })
})

test('several options and own words are one answer', () => {
  const chosen = choose(MANY, choose(MANY, NO_ANSWER, 'A', true), 'B', true)
  const written = type(MANY, chosen, ' c, d ')
  expect(formatAnswer(written)).toBe('A, B, c, d')
  expect(formatAnswer(choose(MANY, written, 'A', false))).toBe('B, c, d')
  expect(formatAnswer(type(MANY, NO_ANSWER, '  '))).toBe('')
})
