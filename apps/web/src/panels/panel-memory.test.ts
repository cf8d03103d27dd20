import { expect, test } from 'bun:test'
import type { GitPanelState } from '../git/changes.tsx'
import { RecentMap, PanelMemory } from './panel-memory.ts'

test('a thing is the same again, until enough others were asked for since', () => {
  const kept = new RecentMap<object>()
  const first = kept.recall('first', () => ({}))
  for (let at = 0; at < 7; at += 1) kept.recall(`other ${at}`, () => ({}))
  expect(kept.recall('first', () => ({}))).toBe(first)
  for (let at = 7; at < 14; at += 1) kept.recall(`other ${at}`, () => ({}))
  expect(kept.recall('first', () => ({}))).toBe(first)
  for (let at = 0; at < 8; at += 1) kept.recall(`another ${at}`, () => ({}))
  expect(kept.recall('first', () => ({}))).not.toBe(first)
})

test('what somebody left is not there for somebody else', () => {
  const memory = new PanelMemory()
  const make = (): GitPanelState => ({ areBranchesOpen: true, isLogOpen: false })
  memory.belongTo('ann')
  const left = memory.git.recall('s', make)
  memory.belongTo('ann')
  expect(memory.git.recall('s', make)).toBe(left)
  memory.belongTo('bob')
  expect(memory.git.recall('s', make)).not.toBe(left)
})
