import { expect, test } from 'bun:test'
import { OpenSessions } from './open-sessions.ts'

const attachments = [
  { id: 'a1', role: 'driver', name: 'ann', connected: true },
  { id: 'a2', role: 'viewer', name: 'Gus', connected: true },
  { id: 'a3', role: 'viewer', name: 'Lara', connected: false },
] as const
const state = {
  status: {
    kind: 'attached',
    session: 's1',
    role: 'driver',
  },
  session: 's1',
  attachment: 'a1',
  title: 'vim',
  presence: {
    type: 'presence',
    driver: 'a1',
    attachments,
    private: null,
  },
} as const

test('knows title and other participants of open sessions', () => {
  const sessions = new OpenSessions()
  sessions.update([state])
  expect(sessions.all.get()).toEqual({
    s1: { title: 'vim', isAttached: true, hasEnded: false, others: ['Gus'] },
  })
})

test('counts another window of the same user once', () => {
  const sessions = new OpenSessions()
  const again = [...attachments, { id: 'a4', role: 'viewer', name: 'ann', connected: true }] as const
  sessions.update([{ ...state, presence: { ...state.presence, attachments: again } }])
  expect(sessions.all.get()['s1']?.others).toEqual(['Gus', 'you in another window'])
})

test('notifies only about changes', () => {
  const sessions = new OpenSessions()
  let tellings = 0
  sessions.all.subscribe(() => (tellings += 1))
  sessions.update([state])
  sessions.update([{ ...state, presence: { ...state.presence } }])
  expect(tellings).toBe(1)
  sessions.update([])
  expect(sessions.all.get()).toEqual({})
})
