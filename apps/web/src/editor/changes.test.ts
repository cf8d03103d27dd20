import { expect, test } from 'bun:test'
import { ChangeSet, Text } from '@codemirror/state'
import { changesBetween } from './changes.ts'

function changes(before: Text, after: Text): ChangeSet {
  return ChangeSet.of(changesBetween(before, after), before.length)
}

const LINES = Array.from({ length: 2_000 }, (_, at) => `line ${at}`)

test('keeps positions when lines are inserted before and after them', () => {
  const before = Text.of(LINES)
  const after = Text.of(['first', ...LINES, 'last'])
  const made = changes(before, after)
  expect(made.apply(before).eq(after)).toBe(true)
  const { from } = before.line(1_000)
  expect(made.mapPos(from)).toBe(after.line(1_001).from)
})

test('turns any text into any other', () => {
  const texts = [[''], ['a'], ['', ''], ['a\r', 'b\r', 'c'], ['🦜', '🐦'], LINES, LINES.toReversed()]
  for (const one of texts)
    for (const other of texts) {
      const [before, after] = [Text.of(one), Text.of(other)]
      expect(changes(before, after).apply(before).toString()).toBe(after.toString())
    }
})
