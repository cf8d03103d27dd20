import { expect, test } from 'bun:test'
import {
  boundShare,
  canHalve,
  leaf,
  leavesOf,
  nextLeaf,
  removeLeaf,
  resizeSplit,
  splitLeaf,
} from './pane-tree.ts'

const two = splitLeaf(leaf('a'), 'a', { id: 'b', direction: 'row', splitId: 's' })
const three = splitLeaf(two, 'b', { id: 'c', direction: 'column', splitId: 't' })

test('puts a view after another one', () => {
  expect(leavesOf(three)).toEqual(['a', 'b', 'c'])
  expect(splitLeaf(two, 'nowhere', { id: 'x', direction: 'row', splitId: 'u' })).toEqual(two)
})

test('gives the space of a removed view to its sibling', () => {
  expect(removeLeaf(three, 'b')).toEqual({ ...two, second: leaf('c') } as typeof two)
  expect(removeLeaf(two, 'a')).toEqual(leaf('b'))
  expect(removeLeaf(leaf('a'), 'a')).toBeUndefined()
})

test('keeps a border where both sides stay visible', () => {
  const shareOf = (share: number) => {
    const tree = resizeSplit(three, 's', share)
    return tree.kind === 'split' ? tree.share : undefined
  }
  expect(shareOf(0.3)).toBe(0.3)
  expect(shareOf(-5)).toBe(0.1)
  expect(shareOf(2)).toBe(0.9)
  expect(shareOf(Number.NaN)).toBe(0.5)
})

test('steps through views with wrap-around', () => {
  expect(nextLeaf(three, 'a', 1)).toBe('b')
  expect(nextLeaf(three, 'c', 1)).toBe('a')
  expect(nextLeaf(three, 'a', -1)).toBe('c')
})

test('splits a pane only when both halves are usable', () => {
  expect(canHalve({ width: 320, height: 100 }, 'row')).toBe(true)
  expect(canHalve({ width: 319, height: 900 }, 'row')).toBe(false)
  expect(canHalve({ width: 100, height: 180 }, 'column')).toBe(true)
  expect(canHalve({ width: 900, height: 179 }, 'column')).toBe(false)
})

test('keeps every pane on both sides of a border large enough', () => {
  const three = splitLeaf(two, 'b', { id: 'c', direction: 'row', splitId: 't' })
  if (three.kind !== 'split') throw new Error('It is one')
  expect(boundShare(three, 0.5, 1000)).toBe(0.5)
  expect(boundShare(three, 0, 1000)).toBe(0.16)
  expect(boundShare(three, 1, 1000)).toBeCloseTo(0.68)
  expect(boundShare(three, 0.9, 400)).toBeCloseTo(1 / 3)
})
