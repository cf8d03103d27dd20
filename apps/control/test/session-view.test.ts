import { expect, test } from 'bun:test'
import { decodeActivity, lastActivityMs } from '../src/sandbox/session-view.ts'

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
const NOW_MS = 1_000
const decode = (...sessions: unknown[]) =>
  decodeActivity({ attachments: 1, sessions, exits: [] }, SANDBOX, NOW_MS)

test('known fields of a session report are stored', () => {
  expect(decode(session)?.[0]).toMatchObject({ id: session.id, cmd: 'bash', lastOutputMs: 5 })
  expect(decode(session)?.[0]).not.toHaveProperty('pid')
})

test('(threat T4) a sandbox can report its own sessions only', () => {
  expect(decode({ ...session, id: `${'1'.repeat(32)}.${'1'.repeat(26)}` })).toEqual([])
})

test('(threat T4) names of users are few, short and printable, and a start time is not in the future', () => {
  const people = ['a\u{1b}[31mb', 'x'.repeat(1_000), ...Array.from({ length: 100 }, () => 'more')]
  const [view] = decode({ ...session, people, createdMs: NOW_MS + 5 }) ?? []
  expect(view?.people.slice(0, 2)).toEqual(['a [31mb', 'x'.repeat(64)])
  expect(view?.people).toHaveLength(32)
  expect(view?.createdMs).toBe(NOW_MS)
})

test('a sandboxd that reports no names and no start time is accepted', () => {
  expect(decode(session)?.[0]).toMatchObject({ people: [], createdMs: null })
})

test('(threat T4) activity times are neither in the future nor negative', () => {
  for (const lastInputMs of [9e15, NOW_MS + 1, Number.MAX_SAFE_INTEGER]) {
    const [response] = decode({ ...session, lastInputMs, lastOutputMs: -5 }) ?? []
    expect(response).toMatchObject({ lastInputMs: NOW_MS, lastOutputMs: 0 })
    expect(response === undefined ? undefined : lastActivityMs(response)).toBe(NOW_MS)
  }
  expect(decode({ ...session, lastInputMs: 999 })?.[0]).toMatchObject({ lastInputMs: 999 })
})

test('malformed sessions are left out, and texts are one line', () => {
  expect(decode({ ...session, state: 'flying' }, null, 5)).toEqual([])
  expect(decode({ ...session, cmd: `a\u001b[31m\n${'b'.repeat(500)}` })?.[0]?.cmd).toMatch(
    /^a \[31m b{200,}$/,
  )
  expect(decodeActivity({ sessions: Array.from({ length: 1_001 }) }, SANDBOX, NOW_MS)).toBeUndefined()
  expect(decodeActivity('x', SANDBOX, NOW_MS)).toBeUndefined()
})
