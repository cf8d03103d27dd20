import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { readState, type SupervisorState, writeState } from './sandbox-files.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'state-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const alive = { id: 'a', epoch: 'e', pid: 7, startTicks: 9, controlSocket: '/s' }
const states: readonly SupervisorState[] = [
  { state: 'starting', ...alive },
  { state: 'running', ...alive, slot: 0, daemonPid: 7, startedMs: 1 },
  { state: 'stopping', ...alive },
  { state: 'stopping', ...alive, reason: 'oom' },
  { state: 'stopped', id: 'a' },
  { state: 'stopped', id: 'a', reason: 'exit_1' },
]

test.each(states)('reads a state as written: %j', (state) => {
  const file = path.join(folder, 'state.json')
  writeState(file, state)
  expect(readState(file)).toEqual(state)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder)).toEqual(['state.json'])
})

test('ignores a state that this version does not know', () => {
  const file = path.join(folder, 'other.json')
  expect(readState(file)).toBeUndefined()
  for (const text of ['', '{', '[]', '{"state":"running"}', JSON.stringify({ ...states[1], more: 1 })]) {
    writeFileSync(file, text)
    expect(readState(file)).toBeUndefined()
  }
})
