import { expect, test } from 'bun:test'
import { describeOutage } from './notices.ts'

const CONTEXT = { host: 'h:1', detachHint: 'Ctrl+] to detach', nowMs: 1000 }
const waiting = {
  kind: 'reconnecting',
  attempt: 3,
  atMs: 4200,
  why: 'The server\x1b[2J cannot be reached',
} as const

test('describeOutage counts down to the next attempt', () => {
  const attached = { ...CONTEXT, wasAttached: true }
  expect(describeOutage(waiting, attached)).toBe(
    'sbx-stdio: connection lost, reconnecting in 4 s (Ctrl+] to detach)',
  )
  expect(describeOutage({ ...waiting, atMs: 10 }, attached)).toBe(
    'sbx-stdio: connection lost, reconnecting (Ctrl+] to detach)',
  )
})

test('describeOutage shows why the first connection fails, without control characters', () => {
  const fresh = { ...CONTEXT, wasAttached: false }
  expect(describeOutage({ kind: 'connecting', attempt: 1 }, fresh)).toBe('sbx-stdio: connecting to h:1 …')
  expect(describeOutage(waiting, fresh)).toBe(
    'sbx-stdio: connecting to h:1, The server [2J cannot be reached …',
  )
})
