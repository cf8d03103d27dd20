import { expect, test } from 'bun:test'
import type { Session } from '../../api/sessions.ts'
import { listSessionLines, participantsText } from './session-list.ts'

const NOW_MS = 10 * 60 * 60 * 1000
const session: Session = {
  id: 's1',
  sandbox: 'x',
  state: 'running',
  mode: 'pty',
  cmd: '/bin/bash',
  attachments: 0,
  createdMs: NOW_MS - 5 * 6e4,
  lastInputMs: null,
  lastOutputMs: null,
  exit: null,
  people: [],
}
const context = { open: {}, self: 'ann', nowMs: NOW_MS, nameSandbox: () => 'dev' }

test('numbers sessions that would look the same, in start order', () => {
  const younger = { ...session, id: 's2', createdMs: NOW_MS }
  const lines = listSessionLines([younger, session], context)
  expect(lines.map(({ name, started, session: { id } }) => [id, name, started])).toEqual([
    ['s1', 'bash 1', 'started 5 minutes ago'],
    ['s2', 'bash 2', 'just started'],
  ])
})

test("shows a terminal's title, and marks sessions that are open", () => {
  const open = { s1: { title: 'vim notes', isAttached: true, hasEnded: false, others: [] } }
  expect(listSessionLines([session], { ...context, open })).toMatchObject([
    { name: 'vim notes', isOpen: true, people: 'you' },
  ])
  expect(listSessionLines([session], context)).toMatchObject([{ name: 'bash', isOpen: false }])
})

test('names the attached users, and the user as such', () => {
  const textOf = (people: readonly string[], attachments = people.length) =>
    participantsText({ ...session, people, attachments }, undefined, 'ann')
  expect(textOf([])).toBe('detached')
  expect(textOf([], 2)).toBe('2 attached')
  expect(textOf(['ann', 'Gus'])).toBe('open in another window, Gus')
  expect(textOf(['a', 'b', 'c', 'd', 'e'])).toBe('a, b, c, 2 more')
  // What the page knows itself is newer than the list.
  const open = { title: '', isAttached: true, hasEnded: false, others: ['Gus'] }
  expect(participantsText(session, open, 'ann')).toBe('you, Gus')
})

test("ignores this page's own stale attachment", () => {
  const open = { title: '', isAttached: false, hasEnded: false, others: [] }
  expect(participantsText({ ...session, people: ['ann', 'Gus'], attachments: 2 }, open, 'ann')).toBe('Gus')
  expect(participantsText({ ...session, people: ['ann'], attachments: 1 }, open, 'ann')).toBe('')
  expect(listSessionLines([session], { ...context, open: { s1: { ...open, hasEnded: true } } })).toEqual([])
})

test("shows what an agent's interface has spent", () => {
  const agent = { ...session, usage: { costUsd: 0.125 }, budgetUsd: 10 }
  expect(listSessionLines([agent, session], context).map(({ spent }) => spent)).toEqual([
    '$0.13 of $10.00',
    '',
  ])
})
