import { expect, test } from 'bun:test'
import type { GitPanelState } from '../git/changes.tsx'
import { RecentMap, PanelMemory } from './panel-memory.ts'

test('returns the same entry until enough others were used since', () => {
  const map = new RecentMap<object>()
  const first = map.getOrCreate('first', () => ({}))
  for (let at = 0; at < 7; at += 1) map.getOrCreate(`other ${at}`, () => ({}))
  expect(map.getOrCreate('first', () => ({}))).toBe(first)
  for (let at = 7; at < 14; at += 1) map.getOrCreate(`other ${at}`, () => ({}))
  expect(map.getOrCreate('first', () => ({}))).toBe(first)
  for (let at = 0; at < 8; at += 1) map.getOrCreate(`another ${at}`, () => ({}))
  expect(map.getOrCreate('first', () => ({}))).not.toBe(first)
})

test('drops the state of another account', () => {
  const memory = new PanelMemory()
  const make = (): GitPanelState => ({ areBranchesOpen: true, isLogOpen: false })
  memory.setAccount('ann')
  const left = memory.git.getOrCreate('s', make)
  memory.setAccount('ann')
  expect(memory.git.getOrCreate('s', make)).toBe(left)
  memory.setAccount('bob')
  expect(memory.git.getOrCreate('s', make)).not.toBe(left)
})
