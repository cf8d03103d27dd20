import { eventually } from '@sandwire/testing'
import { expect, test } from 'bun:test'
import {
  type ProcessTree,
  isAlive,
  parseStat,
  type ProcessEntry,
  readProcess,
  selectProcessTree,
  signalProcess,
} from './process-tree.ts'

const TREE: ProcessTree = { leaderPid: 100, leaderStartTicks: '5000', marker: 'm' }
const entry = (pid: number, changes: Partial<ProcessEntry> = {}): ProcessEntry => ({
  pid,
  parentPid: 1,
  groupId: pid,
  sessionId: pid,
  startTicks: '6000',
  isDead: false,
  ...changes,
})
const pidsOf = (table: readonly ProcessEntry[], marked: readonly number[] = []) =>
  selectProcessTree(TREE, table, ({ pid }) => (marked.includes(pid) ? 'marked' : 'unmarked')).members.map(
    (member) => member.pid,
  )

test('parseStat handles spaces and parentheses in the name', () => {
  const fields = ['S', '1', '2', '3', ...Array.from({ length: 15 }, () => '0'), '987', '0']
  expect(parseStat(`42 (a (b) c) ${fields.join(' ')}`)).toEqual({
    pid: 42,
    parentPid: 1,
    groupId: 2,
    sessionId: 3,
    startTicks: '987',
    isDead: false,
  })
  expect(parseStat('garbage')).toBeUndefined()
})

test('a tree contains its group, its session, marked processes and their descendants', () => {
  const table = [
    entry(100, { startTicks: '5000' }),
    entry(101, { groupId: 100 }),
    entry(102, { sessionId: 100 }),
    entry(103),
    entry(104, { parentPid: 103 }),
    entry(105, { parentPid: 104 }),
    entry(200),
  ]
  expect(pidsOf(table, [103])).toEqual([100, 101, 102, 103, 104, 105])
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
  expect(selectProcessTree(TREE, [entry(200)], () => 'unknown')).toEqual({ members: [], isCertain: false })
  expect(selectProcessTree(TREE, [entry(200, { sessionId: 100 })], () => 'unknown').isCertain).toBe(true)
})

test('signalProcess spares a process with another start time', async () => {
  const child = Bun.spawn(['sleep', '60'])
  const real = await eventually(() => readProcess(child.pid), { what: 'the child' })
  signalProcess({ ...real, startTicks: '1' }, 9)
  expect(isAlive(real)).toBe(true)
  signalProcess(real, 9)
  await child.exited
  expect(child.signalCode).toBe('SIGKILL')
})
