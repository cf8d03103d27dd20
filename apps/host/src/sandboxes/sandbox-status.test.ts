import { expect, test } from 'bun:test'
import { identifyProcess } from '../data/process-identity.ts'
import { isAlive, statusFrom } from './sandbox-status.ts'

const self = identifyProcess(process.pid) ?? { pid: 1, startTicks: 1 }
const alive = { id: 'a', epoch: 'e', ...self, controlSocket: '/s' }
const running = { state: 'running', ...alive, slot: 17, daemonPid: 9, startedMs: 5 } as const
/** An earlier process with the pid of this one. */
const earlier = { ...running, startTicks: self.startTicks - 1 }

test('a running sandbox has its slot as address', () => {
  expect(isAlive(running)).toBe(true)
  expect(statusFrom('a', running)).toEqual({
    id: 'a',
    state: 'running',
    address: 'slot:17',
    epoch: 'e',
    startedMs: 5,
  })
})

test('(threat T40) does not take a process with a reused pid for the supervisor', () => {
  expect(isAlive(earlier)).toBe(false)
  expect(statusFrom('a', earlier)).toEqual({ id: 'a', state: 'stopped', reason: 'supervisor_lost' })
  expect(statusFrom('a', { ...earlier, state: 'stopping', reason: 'oom' })).toMatchObject({ reason: 'oom' })
})

test('a start in progress is reported, and one whose supervisor died is not', () => {
  expect(statusFrom('a', { state: 'starting', ...alive })).toEqual({ id: 'a', state: 'starting' })
  const lost = { ...alive, startTicks: earlier.startTicks }
  expect(statusFrom('a', { state: 'starting', ...lost })).toEqual({
    id: 'a',
    state: 'stopped',
    reason: 'supervisor_lost',
  })
})

test('a stopping or ended sandbox is stopped', () => {
  const stopped = { id: 'a', state: 'stopped' } as const
  expect(statusFrom('a', undefined)).toEqual(stopped)
  expect(statusFrom('a', { state: 'stopping', ...alive })).toEqual(stopped)
  expect(statusFrom('a', { ...stopped, reason: 'exit_1' })).toEqual({ ...stopped, reason: 'exit_1' })
})
