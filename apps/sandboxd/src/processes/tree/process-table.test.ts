import { eventually } from '@sandwire/testing'
import { expect, test } from 'bun:test'
import {
  isAlive,
  listPids,
  MARKER_VARIABLE,
  parseStat,
  readMarked,
  readProcess,
  signalProcess,
} from './process-table.ts'
import { tagOf, withTag } from './process-tag.ts'

test('parseStat handles spaces and parentheses in the name', () => {
  const fields = ['S', '1', '2', '3', ...Array.from({ length: 15 }, () => '0'), '987', '0']
  expect(parseStat(`42 (a (b) c) ${fields.join(' ')}`)).toEqual({
    pid: 42,
    name: 'a (b) c',
    parentPid: 1,
    groupId: 2,
    sessionId: 3,
    startTicks: '987',
    isDead: false,
  })
  expect(parseStat('garbage')).toBeUndefined()
})

test('readMarked reads the tag and the markers of a process', async () => {
  const env = { [MARKER_VARIABLE]: 'a', [`${MARKER_VARIABLE}_NOT`]: 'b' }
  const child = withTag(tagOf('t'), () => Bun.spawn(['/bin/sleep', '60'], { env }))
  expect(listPids()).toContain(child.pid)
  const entry = await eventually(
    () => readMarked(child.pid)?.markers?.length === 1 && readMarked(child.pid),
    {
      what: 'the environment of the child',
    },
  )
  expect(entry).toMatchObject({ parentPid: process.pid, tag: String(tagOf('t')), markers: ['a'] })
  child.kill('SIGKILL')
  await child.exited
  expect(readMarked(child.pid)).toBeUndefined()
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
