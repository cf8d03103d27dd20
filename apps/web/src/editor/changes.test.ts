import { expect, test } from 'bun:test'
import { ChangeSet, Text } from '@codemirror/state'
import { changesBetween } from './changes.ts'

function changes(before: Text, after: Text): ChangeSet {
  return ChangeSet.of(changesBetween(before, after), before.length)
}

const LINES = Array.from({ length: 2_000 }, (_, at) => `line ${at}`)

test('lines that come before and behind a place leave it alone', () => {
  const before = Text.of(LINES)
  const after = Text.of(['first', ...LINES, 'last'])
  const made = changes(before, after)
  expect(made.apply(before).eq(after)).toBe(true)
  const { from } = before.line(1_000)
  expect(made.mapPos(from)).toBe(after.line(1_001).from)
})

test('any text becomes any other', () => {
  const texts = [[''], ['a'], ['', ''], ['a\r', 'b\r', 'c'], ['🦜', '🐦'], LINES, LINES.toReversed()]
  for (const one of texts)
    for (const other of texts) {
      const [before, after] = [Text.of(one), Text.of(other)]
      expect(changes(before, after).apply(before).toString()).toBe(after.toString())
    }
})
