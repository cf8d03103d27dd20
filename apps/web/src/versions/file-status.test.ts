import { expect, test } from 'bun:test'
import type { Sandbox } from '../api/sandboxes.ts'
import type { StatusEvent } from '../api/versions.ts'
import { FileStatuses } from './file-status.ts'

const SAVED = { state: 'idle', savedMs: 5, error: null, restored: null } as const
const SANDBOX: Sandbox = {
  id: 'a',
  name: 'dev',
  state: 'running',
  reason: null,
  createdMs: 0,
  startedMs: 0,
  lastActivityMs: 0,
  sleepAfterSeconds: null,
  ephemeral: false,
  saved: SAVED,
  network: { policy: 'none', allow: [] },
  isolation: 'bubblewrap',
}

function open() {
  const lost: string[] = []
  const watched: string[] = []
  let send: (event: StatusEvent) => void = () => undefined
  const statuses = new FileStatuses(
    ({ name }, { version }) => void lost.push(`${name} ${version}`),
    (sandbox, onEvent) => {
      watched.push(`watch ${sandbox}`)
      send = onEvent
      return () => void watched.push(`stop ${sandbox}`)
    },
  )
  return { statuses, lost, watched, send: (event: StatusEvent) => send(event) }
}

test('follows the events of a running sandbox, and the list otherwise', () => {
  const { statuses, watched, send } = open()
  statuses.follow(SANDBOX)
  send({ kind: 'state', state: { ...SAVED, state: 'syncing' } })
  // The list may be older than the events.
  statuses.follow({ ...SANDBOX })
  expect(statuses.status.get()?.saved.state).toBe('syncing')
  send({ kind: 'ended' })
  statuses.follow({ ...SANDBOX })
  expect(watched).toEqual(['watch a', 'stop a', 'watch a'])
  statuses.follow({ ...SANDBOX, state: 'stopped', saved: { ...SAVED, savedMs: 9 } })
  expect(statuses.status.get()).toEqual({
    sandbox: 'a',
    saved: { state: 'idle', savedMs: 9, error: null },
    isRestoring: false,
  })
  statuses.follow({ ...SANDBOX, id: 'b', saved: null })
  expect(statuses.status.get()).toBeUndefined()
})

test('tells once that a sandbox was lost and recreated', () => {
  const { statuses, lost, send } = open()
  const restored = { version: 3, savedMs: 1, restoredMs: 7, reason: 'lost' } as const
  statuses.follow({ ...SANDBOX, saved: { ...SAVED, restored } })
  send({ kind: 'restored', restored })
  send({ kind: 'restored', restored: { ...restored, restoredMs: 8, reason: 'started' } })
  statuses.follow({ ...SANDBOX, saved: { ...SAVED, restored } })
  expect(lost).toEqual(['dev 3'])
  send({ kind: 'restored', restored: { ...restored, restoredMs: 9, version: 4 } })
  expect(lost).toEqual(['dev 3', 'dev 4'])
})
