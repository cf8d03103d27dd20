import { expect, test } from 'bun:test'
import { decodeActivity } from '../src/sandbox/session-view.ts'

const SANDBOX = '0'.repeat(32)
const session = {
  id: `${SANDBOX}.${'1'.repeat(26)}`,
  state: 'running',
  mode: 'pty',
  cmd: 'bash',
  pid: 7,
  attachments: 1,
  driver: 'a',
  output: { start: 0, end: 5 },
  lastInputMs: null,
  lastOutputMs: 5,
  keepSeconds: 60,
  pinned: false,
  overflow: 'trim',
  exit: null,
}
const decode = (...sessions: unknown[]) => decodeActivity({ attachments: 1, sessions, exits: [] }, SANDBOX)

test('what a sandbox says of its sessions is kept as far as it is known', () => {
  expect(decode(session)?.[0]).toMatchObject({ id: session.id, cmd: 'bash', lastOutputMs: 5 })
  expect(decode(session)?.[0]).not.toHaveProperty('pid')
})

test('(threat T4) a sandbox speaks for its own sessions only', () => {
  expect(decode({ ...session, id: `${'1'.repeat(32)}.${'1'.repeat(26)}` })).toEqual([])
})

test('what is not understood is left out, and its text is one line', () => {
  expect(decode({ ...session, state: 'flying' }, null, 5)).toEqual([])
  expect(decode({ ...session, cmd: `a\u001b[31m\n${'b'.repeat(500)}` })?.[0]?.cmd).toMatch(
    /^a \[31m b{200,}$/,
  )
  expect(decodeActivity({ sessions: Array.from({ length: 1_001 }) }, SANDBOX)).toBeUndefined()
  expect(decodeActivity('x', SANDBOX)).toBeUndefined()
})
