import { expect, test } from 'bun:test'
import { type Match, MatchGroups } from './match-groups.ts'
import type { RgEvent } from './rg-event.ts'

/** `m3` is a match in line 3, `c4` a line beside one, `/` the end of a file. */
function group(context: number, script: string): string[] {
  const groups = new MatchGroups(context)
  const events = script.split(' ').map((word): RgEvent => {
    if (word === '/') return { kind: 'file-end' }
    const line = Number(word.slice(1))
    const kind = word.startsWith('m') ? 'match' : 'context'
    return { kind, path: 'x', line, bytes: Buffer.from(String(line)), ranges: [], isCut: false }
  })
  return events.flatMap((event) => {
    const match = groups.push(event)
    return match === undefined ? [] : [show(match)]
  })
}

function show({ before, line, after }: Match): string {
  return `${before.join()}<${line}>${after.join()}`
}

test('without context every match is told at once', () => {
  expect(group(0, 'm1 m2')).toEqual(['<1>', '<2>'])
})

test('a match has the lines around it', () => {
  expect(group(2, 'c1 c2 m3 c4 c5 /')).toEqual(['1,2<3>4,5'])
})

test('a match is told as soon as nothing can follow', () => {
  expect(group(2, 'm1 c2 c3')).toEqual(['<1>2,3'])
})

test('a line between two matches is around both, and a match around none', () => {
  expect(group(2, 'm1 c2 m3 m4 c5 c6 /')).toEqual(['<1>2', '2<3>', '<4>5,6'])
})

test('lines apart from each other are not taken together', () => {
  expect(group(1, 'm1 c2 c8 m9 c10 / c1 m2 /')).toEqual(['<1>2', '8<9>10', '1<2>'])
})

test('the end of a file ends what is around a match', () => {
  expect(group(3, 'm9 c10 / m1 c2 /')).toEqual(['<9>10', '<1>2'])
})
