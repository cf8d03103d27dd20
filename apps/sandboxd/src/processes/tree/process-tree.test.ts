import { expect, test } from 'bun:test'
import type { MarkedEntry } from './process-table.ts'
import { type ProcessTree, selectProcessTrees } from './process-tree.ts'
import { tagOf } from './process-tag.ts'

const TREE: ProcessTree = { leaderPid: 100, leaderStartTicks: '5000', marker: 'm' }
const OTHER: ProcessTree = { leaderPid: 300, leaderStartTicks: '5000', marker: 'n' }

const entry = (pid: number, changes: Partial<MarkedEntry> = {}): MarkedEntry => ({
  pid,
  name: 'x',
  parentPid: 1,
  groupId: pid,
  sessionId: pid,
  startTicks: '6000',
  isDead: false,
  tag: undefined,
  markers: [],
  ...changes,
})
const viewOf = (table: readonly MarkedEntry[], tree = TREE) => {
  const { members = [], isCertain } = selectProcessTrees([TREE, OTHER], table).get(tree) ?? {}
  return { pids: members.map(({ pid }) => pid).toSorted((a, b) => a - b), isCertain }
}
const pidsOf = (table: readonly MarkedEntry[], tree = TREE) => viewOf(table, tree).pids

test('a tree contains its group, its session, marked and tagged processes and their descendants', () => {
  const table = [
    entry(100, { startTicks: '5000' }),
    entry(101, { groupId: 100 }),
    entry(102, { sessionId: 100 }),
    entry(103, { markers: ['x', 'm'] }),
    entry(106, { tag: String(tagOf('m')) }),
    entry(105, { parentPid: 104 }),
    entry(104, { parentPid: 103 }),
    entry(200),
  ]
  expect(pidsOf(table)).toEqual([100, 101, 102, 103, 104, 105, 106])
})

test('each tree gets its own processes from one table', () => {
  const table = [
    entry(100, { startTicks: '5000', tag: String(tagOf('m')) }),
    entry(101, { parentPid: 100, tag: String(tagOf('m')), markers: ['m'] }),
    entry(300, { startTicks: '5000', tag: String(tagOf('n')) }),
    entry(301, { markers: ['n'] }),
    entry(302, { tag: String(tagOf('n')), markers: ['m'] }),
  ]
  expect(pidsOf(table, TREE)).toEqual([100, 101, 302])
  expect(pidsOf(table, OTHER)).toEqual([300, 301, 302])
})

test('a tree omits this process and what descends from it alone', () => {
  const table = [entry(process.pid, { markers: ['m'] }), entry(101, { parentPid: process.pid })]
  expect(pidsOf(table)).toEqual([])
})

test('a tree omits zombies and contains their children', () => {
  expect(pidsOf([entry(100, { startTicks: '5000', isDead: true }), entry(101, { parentPid: 100 })])).toEqual([
    101,
  ])
})

test('a tree omits a process that reuses the pid of its leader', () => {
  expect(pidsOf([entry(100, { startTicks: '7000' }), entry(101, { sessionId: 100 })])).toEqual([])
})

test('a tree is uncertain during the execve of a process that may belong to it', () => {
  expect(viewOf([entry(200, { markers: undefined })])).toEqual({ pids: [], isCertain: false })
  expect(viewOf([entry(200, { markers: undefined, sessionId: 100 })]).isCertain).toBe(true)
  expect(viewOf([entry(200, { markers: undefined, sessionId: 100 })], OTHER).isCertain).toBe(false)
  expect(viewOf([entry(200, { markers: undefined, tag: String(tagOf('another')) })]).isCertain).toBe(true)
})
